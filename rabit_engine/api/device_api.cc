// The APIs for device memory: rabit/device.h, and, with handles and for any communicator, warren/c_api.h.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "rabit/device.h"
#include "rabit_engine/api/c_result.h"
#include "rabit_engine/api/collectives_face.h"
#include "rabit_engine/api/device_call.h"
#include "rabit_engine/api/session.h"
#include "warren/c_api.h"

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

// --- warren/c_api.h ----------------------------------------------------------------------------------------

namespace {

using warren::api::DeviceCall;
using DeviceCollective = warren::device::Collective;
using DeviceKind = warren::device::Kind;
using DeviceOperation = warren::device::Operation;
using DeviceType = warren::device::Type;

DeviceType DeviceTypeOf(const Session& session, const Call& call, int type) {
  warren::api::face::ElementBytes(session, call, type);
  switch (static_cast<WarrenType>(type)) {
    case WARREN_INT8:
      return DeviceType::kInt8;
    case WARREN_UINT8:
      return DeviceType::kUint8;
    case WARREN_INT32:
      return DeviceType::kInt32;
    case WARREN_UINT32:
      return DeviceType::kUint32;
    case WARREN_INT64:
      return DeviceType::kInt64;
    case WARREN_UINT64:
      return DeviceType::kUint64;
    case WARREN_FLOAT32:
      return DeviceType::kFloat32;
    case WARREN_FLOAT64:
      return DeviceType::kFloat64;
    case WARREN_FLOAT16:
      return DeviceType::kFloat16;
    case WARREN_BFLOAT16:
      return DeviceType::kBFloat16;
  }
  session.Refuse(call, "there is no such element type on devices");
}

DeviceOperation DeviceOperationOf(const Session& session, const Call& call, int op) {
  switch (op) {
    case WARREN_SUM:
      return DeviceOperation::kSum;
    case WARREN_PROD:
      return DeviceOperation::kProduct;
    case WARREN_MAX:
      return DeviceOperation::kMax;
    case WARREN_MIN:
      return DeviceOperation::kMin;
    case WARREN_AVG:
      return DeviceOperation::kAverage;
    default:
      session.Refuse(call, fmt::format("there is no operation {} on devices", op));
  }
}

/// `fill(session, call, collective)` sets the kind and what depends on it; the rest is common.
template <typename Fill>
int OnDevice(WarrenComm comm, const char* name, const void* send, void* recv, size_t count, int type,
             void* stream, WarrenHandle* handle, Fill&& fill) {
  return warren::api::face::On(comm, name, [&](Session& session, const Call& call) {
    DeviceCollective collective;
    collective.send = send;
    collective.receive = recv;
    collective.count = count;
    collective.type = DeviceTypeOf(session, call, type);
    collective.stream = stream;
    fill(session, call, collective);
    if (handle == nullptr) return session.OnDevice(call, collective);
    *handle = nullptr;
    *handle = new WarrenHandle_{std::make_shared<DeviceCall>(call, comm->session, collective)};
  });
}

}  // namespace

int WarrenDeviceAllreduce(WarrenComm comm, const void* send, void* recv, size_t count, int type, int op,
                          void* stream, WarrenHandle* handle) {
  return OnDevice(comm, "WarrenDeviceAllreduce", send, recv, count, type, stream, handle,
                  [&](Session& session, const Call& call, DeviceCollective& collective) {
                    collective.operation = DeviceOperationOf(session, call, op);
                  });
}

int WarrenDeviceReduceScatter(WarrenComm comm, const void* send, void* recv, size_t count, int type, int op,
                              void* stream, WarrenHandle* handle) {
  return OnDevice(comm, "WarrenDeviceReduceScatter", send, recv, count, type, stream, handle,
                  [&](Session& session, const Call& call, DeviceCollective& collective) {
                    collective.kind = DeviceKind::kReduceScatter;
                    collective.operation = DeviceOperationOf(session, call, op);
                  });
}

int WarrenDeviceBroadcast(WarrenComm comm, const void* send, void* recv, size_t count, int type, int root,
                          void* stream, WarrenHandle* handle) {
  return OnDevice(comm, "WarrenDeviceBroadcast", send, recv, count, type, stream, handle,
                  [&](Session&, const Call&, DeviceCollective& collective) {
                    collective.kind = DeviceKind::kBroadcast;
                    collective.root = root;
                  });
}

int WarrenDeviceAllgather(WarrenComm comm, const void* send, void* recv, size_t count, int type, void* stream,
                          WarrenHandle* handle) {
  return OnDevice(
      comm, "WarrenDeviceAllgather", send, recv, count, type, stream, handle,
      [&](Session&, const Call&, DeviceCollective& collective) { collective.kind = DeviceKind::kAllgather; });
}
