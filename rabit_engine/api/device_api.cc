// The APIs for device memory: rabit/device.h, and the device functions of warren/c_api.h, which work on any
// communicator and can return handles.
#include <fmt/format.h>

#include <iterator>
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

using warren::Collective;
using warren::api::AttemptWithSession;
using warren::api::Call;
using warren::api::LastError;
using warren::api::Session;
using DeviceOperation = warren::device::Operation;
using DeviceReduceOp = warren::device::ReduceOp;
using DeviceType = warren::device::Type;

/// The arguments of a function for device memory. `type` and `op` are codes of the function's header.
struct DeviceArguments {
  Collective kind;
  const void* send;
  void* recv;
  std::size_t count;
  int type;
  void* stream;
  int op = 0;
  int root = 0;

  DeviceOperation As(DeviceType device_type, DeviceReduceOp device_op) const {
    return {kind, send, recv, count, device_type, device_op, root, stream};
  }
};

int RunOnDevice(const char* name, const DeviceArguments& arguments) {
  const Call call{name};
  return AttemptWithSession(call, [&](Session& session) {
    session.OnDevice(call, arguments.As(static_cast<DeviceType>(arguments.type),
                                        static_cast<DeviceReduceOp>(arguments.op)));
  });
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
  return RunOnDevice("RabitDeviceAllreduce",
                     {Collective::kAllreduce, sendbuf, recvbuf, count, type, stream, operation});
}

int RabitDeviceBroadcast(const void* sendbuf, void* recvbuf, size_t count, int type, int root, void* stream) {
  return RunOnDevice("RabitDeviceBroadcast",
                     {Collective::kBroadcast, sendbuf, recvbuf, count, type, stream, 0, root});
}

int RabitDeviceAllgather(const void* sendbuf, void* recvbuf, size_t count, int type, void* stream) {
  return RunOnDevice("RabitDeviceAllgather", {Collective::kAllgather, sendbuf, recvbuf, count, type, stream});
}

int RabitDeviceReduceScatter(const void* sendbuf, void* recvbuf, size_t count, int type, int operation,
                             void* stream) {
  return RunOnDevice("RabitDeviceReduceScatter",
                     {Collective::kReduceScatter, sendbuf, recvbuf, count, type, stream, operation});
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

DeviceType DeviceTypeOf(const Session& session, const Call& call, int type) {
  warren::api::CElementBytes(session, call, type);  // refuses codes that are not in WarrenType
  using T = DeviceType;
  // There are no codes 8 and 9; the entries in their places are not used.
  constexpr T kTypes[] = {T::kInt8,    T::kUint8,   T::kInt32, T::kUint32, T::kInt64,   T::kUint64,
                          T::kFloat32, T::kFloat64, T::kInt8,  T::kInt8,   T::kFloat16, T::kBFloat16};
  static_assert(std::size(kTypes) == WARREN_BFLOAT16 + 1);
  return kTypes[type];
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

int OnDevice(WarrenComm comm, const char* name, const DeviceArguments& arguments, WarrenHandle* handle) {
  return warren::api::face::On(comm, name, [&](Session& session, const Call& call) {
    const DeviceType type = DeviceTypeOf(session, call, arguments.type);
    const DeviceReduceOp op = warren::Reduces(arguments.kind) ? DeviceReduceOpOf(session, call, arguments.op)
                                                              : DeviceReduceOp::kSum;
    const DeviceOperation operation = arguments.As(type, op);
    if (handle == nullptr) return session.OnDevice(call, operation);
    *handle = nullptr;
    *handle = new WarrenHandle_{std::make_shared<DeviceCall>(call, comm->session, operation)};
  });
}

}  // namespace

int WarrenDeviceAllreduce(WarrenComm comm, const void* send, void* recv, size_t count, int type, int op,
                          void* stream, WarrenHandle* handle) {
  return OnDevice(comm, "WarrenDeviceAllreduce",
                  {Collective::kAllreduce, send, recv, count, type, stream, op}, handle);
}

int WarrenDeviceReduceScatter(WarrenComm comm, const void* send, void* recv, size_t count, int type, int op,
                              void* stream, WarrenHandle* handle) {
  return OnDevice(comm, "WarrenDeviceReduceScatter",
                  {Collective::kReduceScatter, send, recv, count, type, stream, op}, handle);
}

int WarrenDeviceBroadcast(WarrenComm comm, const void* send, void* recv, size_t count, int type, int root,
                          void* stream, WarrenHandle* handle) {
  return OnDevice(comm, "WarrenDeviceBroadcast",
                  {Collective::kBroadcast, send, recv, count, type, stream, 0, root}, handle);
}

int WarrenDeviceAllgather(WarrenComm comm, const void* send, void* recv, size_t count, int type, void* stream,
                          WarrenHandle* handle) {
  return OnDevice(comm, "WarrenDeviceAllgather", {Collective::kAllgather, send, recv, count, type, stream},
                  handle);
}
