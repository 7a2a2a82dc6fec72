// The APIs for device memory: rabit/device.h, and the device functions of warren/c_api.h, which work on any
// communicator and can return handles.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "rabit/device.h"
#include "rabit_engine/api/c_operation.h"
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
using DeviceOperation = warren::device::Operation;

int RunOnDevice(const char* name, const DeviceOperation& operation) {
  const Call call{name};
  return AttemptWithSession(call, [&](Session& session) { session.OnDevice(call, operation); });
}

DeviceOperation Make(warren::Collective kind, const void* send, void* receive, size_t count, int type,
                     void* stream) {
  DeviceOperation made;
  made.kind = kind;
  made.send = send;
  made.receive = receive;
  made.count = count;
  made.type = static_cast<warren::device::Type>(type);
  made.stream = stream;
  return made;
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
  DeviceOperation made = Make(warren::Collective::kAllreduce, sendbuf, recvbuf, count, type, stream);
  made.operation = static_cast<warren::device::ReduceOp>(operation);
  return RunOnDevice("RabitDeviceAllreduce", made);
}

int RabitDeviceBroadcast(const void* sendbuf, void* recvbuf, size_t count, int type, int root, void* stream) {
  DeviceOperation made = Make(warren::Collective::kBroadcast, sendbuf, recvbuf, count, type, stream);
  made.root = root;
  return RunOnDevice("RabitDeviceBroadcast", made);
}

int RabitDeviceAllgather(const void* sendbuf, void* recvbuf, size_t count, int type, void* stream) {
  return RunOnDevice("RabitDeviceAllgather",
                     Make(warren::Collective::kAllgather, sendbuf, recvbuf, count, type, stream));
}

int RabitDeviceReduceScatter(const void* sendbuf, void* recvbuf, size_t count, int type, int operation,
                             void* stream) {
  DeviceOperation made = Make(warren::Collective::kReduceScatter, sendbuf, recvbuf, count, type, stream);
  made.operation = static_cast<warren::device::ReduceOp>(operation);
  return RunOnDevice("RabitDeviceReduceScatter", made);
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
using DeviceReduceOp = warren::device::ReduceOp;
using DeviceType = warren::device::Type;

DeviceType DeviceTypeOf(const Session& session, const Call& call, int type) {
  warren::api::CElementBytes(session, call, type);
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

DeviceReduceOp DeviceReduceOpOf(const Session& session, const Call& call, int op) {
  switch (op) {
    case WARREN_SUM:
      return DeviceReduceOp::kSum;
    case WARREN_PROD:
      return DeviceReduceOp::kProduct;
    case WARREN_MAX:
      return DeviceReduceOp::kMax;
    case WARREN_MIN:
      return DeviceReduceOp::kMin;
    case WARREN_AVG:
      return DeviceReduceOp::kAverage;
    default:
      session.Refuse(call, fmt::format("there is no operation {} on devices", op));
  }
}

/// The arguments of a function for device memory.
struct DeviceArguments {
  warren::Collective kind;
  const void* send;
  void* recv;
  std::size_t count;
  int type;
  void* stream;
  int op = WARREN_SUM;
  int root = 0;
};

int OnDevice(WarrenComm comm, const char* name, const DeviceArguments& arguments, WarrenHandle* handle) {
  return warren::api::face::On(comm, name, [&](Session& session, const Call& call) {
    DeviceOperation made =
        Make(arguments.kind, arguments.send, arguments.recv, arguments.count, 0, arguments.stream);
    made.type = DeviceTypeOf(session, call, arguments.type);
    if (warren::Reduces(arguments.kind)) made.operation = DeviceReduceOpOf(session, call, arguments.op);
    made.root = arguments.root;
    if (handle == nullptr) return session.OnDevice(call, made);
    *handle = nullptr;
    *handle = new WarrenHandle_{std::make_shared<DeviceCall>(call, comm->session, made)};
  });
}

}  // namespace

int WarrenDeviceAllreduce(WarrenComm comm, const void* send, void* recv, size_t count, int type, int op,
                          void* stream, WarrenHandle* handle) {
  return OnDevice(comm, "WarrenDeviceAllreduce",
                  {warren::Collective::kAllreduce, send, recv, count, type, stream, op}, handle);
}

int WarrenDeviceReduceScatter(WarrenComm comm, const void* send, void* recv, size_t count, int type, int op,
                              void* stream, WarrenHandle* handle) {
  return OnDevice(comm, "WarrenDeviceReduceScatter",
                  {warren::Collective::kReduceScatter, send, recv, count, type, stream, op}, handle);
}

int WarrenDeviceBroadcast(WarrenComm comm, const void* send, void* recv, size_t count, int type, int root,
                          void* stream, WarrenHandle* handle) {
  return OnDevice(comm, "WarrenDeviceBroadcast",
                  {warren::Collective::kBroadcast, send, recv, count, type, stream, WARREN_SUM, root},
                  handle);
}

int WarrenDeviceAllgather(WarrenComm comm, const void* send, void* recv, size_t count, int type, void* stream,
                          WarrenHandle* handle) {
  return OnDevice(comm, "WarrenDeviceAllgather",
                  {warren::Collective::kAllgather, send, recv, count, type, stream}, handle);
}
