// The device face: rabit/device.h.
#include <string>

#include "rabit/device.h"
#include "rabit_engine/api/c_result.h"
#include "rabit_engine/api/session.h"

namespace {

using warren::api::AttemptWithSession;
using warren::api::Call;
using warren::api::LastError;
using warren::api::Session;
using warren::device::Collective;
using warren::device::Kind;

int Run(const char* name, const Collective& collective) {
  const Call call{name};
  return AttemptWithSession(call, [&](Session& session) { session.OnDevice(call, collective); });
}

Collective Make(Kind kind, const void* send, void* receive, size_t count, int type, void* stream) {
  Collective collective;
  collective.kind = kind;
  collective.send = send;
  collective.receive = receive;
  collective.count = count;
  collective.type = static_cast<warren::device::Type>(type);
  collective.stream = stream;
  return collective;
}

}  // namespace

int RabitDeviceSelect(int* device) {
  const Call call{"RabitDeviceSelect"};
  return AttemptWithSession(call, [&](Session& session) {
    const int selected = session.SelectDevice(call);
    if (device != nullptr) *device = selected;
  });
}

int RabitDeviceAllreduce(const void* sendbuf, void* recvbuf, size_t count, int type, int operation,
                         void* stream) {
  Collective collective = Make(Kind::kAllreduce, sendbuf, recvbuf, count, type, stream);
  collective.operation = static_cast<warren::device::Operation>(operation);
  return Run("RabitDeviceAllreduce", collective);
}

int RabitDeviceBroadcast(const void* sendbuf, void* recvbuf, size_t count, int type, int root, void* stream) {
  Collective collective = Make(Kind::kBroadcast, sendbuf, recvbuf, count, type, stream);
  collective.root = root;
  return Run("RabitDeviceBroadcast", collective);
}

int RabitDeviceAllgather(const void* sendbuf, void* recvbuf, size_t count, int type, void* stream) {
  return Run("RabitDeviceAllgather", Make(Kind::kAllgather, sendbuf, recvbuf, count, type, stream));
}

int RabitDeviceReduceScatter(const void* sendbuf, void* recvbuf, size_t count, int type, int operation,
                             void* stream) {
  Collective collective = Make(Kind::kReduceScatter, sendbuf, recvbuf, count, type, stream);
  collective.operation = static_cast<warren::device::Operation>(operation);
  return Run("RabitDeviceReduceScatter", collective);
}

int RabitDeviceGroupStart() {
  const Call call{"RabitDeviceGroupStart"};
  return AttemptWithSession(call, [&](Session& session) { session.DeviceGroupStart(call); });
}

int RabitDeviceGroupEnd() {
  const Call call{"RabitDeviceGroupEnd"};
  return AttemptWithSession(call, [&](Session& session) { session.DeviceGroupEnd(call); });
}

int RabitDeviceSynchronize(void* stream) {
  const Call call{"RabitDeviceSynchronize"};
  return AttemptWithSession(call, [&](Session& session) { session.DeviceSynchronize(call, stream); });
}

const char* RabitDeviceDescribe() {
  thread_local std::string text;
  text.clear();
  const Call call{"RabitDeviceDescribe"};
  AttemptWithSession(call, [&](Session& session) { text = session.DescribeDevices(call); });
  return text.c_str();
}

const char* RabitDeviceGetLastError() {
  return LastError().c_str();
}
