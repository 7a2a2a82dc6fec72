/* Collectives on the memory of GPUs, in C and C++, between RabitInit and RabitFinalize (rabit/c_api.h,
 * rabit.h). Experimental: run on one GPU, never on several. warren/c_api.h has the same with handles.
 *
 * They are NCCL's where each rank has a GPU of its own; ranks that share a GPU work in each other's memory,
 * and where neither can be, the way goes through the host. The first call finds out which it is, and rank 0
 * says so in a line. docs/how-to/gpu.md tells more. librabit loads librabit_cuda.so, and that NCCL, when they
 * are first needed.
 *
 * Buffers are device memory of the GPU that is in use: that of the first buffer ever given. All ranks make
 * the same calls in the same order. `stream` is a cudaStream_t (NULL: the default one). In place: sendbuf ==
 * recvbuf for RabitDeviceAllreduce and RabitDeviceBroadcast, sendbuf == recvbuf + rank * count for
 * RabitDeviceAllgather, recvbuf
 * == sendbuf + rank * count for RabitDeviceReduceScatter; otherwise the two must not overlap.
 *
 * Before LoadCheckPoint a call is put on its stream, after the work that is there, and may still run when it
 * returns; with NCCL (and with one rank), and after a first call outside, it can be captured into a CUDA
 * graph, by all ranks or none, which has to be destroyed before Finalize; elsewhere it is refused. Wait with
 * RabitDeviceSynchronize, which knows when another rank is lost, rather than with cudaStreamSynchronize: with
 * NCCL that then returns within a second, but with any result, and on a GPU that ranks share it may not
 * return. After LoadCheckPoint a call returns when its result is there and kept: ranks may be lost, and
 * started again.
 *
 * Errors: the C functions return 0 when they succeeded, else -1, and RabitDeviceGetLastError says why; those
 * of C++ throw dmlc::Error. After an error in a collective all further calls fail; a call that is refused,
 * for its arguments or because its stream is captured, changes nothing but that the group it is in is
 * refused, too, at its end. Threads: as in rabit.h. */
#ifndef RABIT_DEVICE_H_
#define RABIT_DEVICE_H_

#include "rabit/c_api.h"

/* Element types, numbered as NCCL numbers them. */
enum RabitDeviceType {
  RABIT_DEVICE_INT8 = 0,
  RABIT_DEVICE_UINT8 = 1,
  RABIT_DEVICE_INT32 = 2,
  RABIT_DEVICE_UINT32 = 3,
  RABIT_DEVICE_INT64 = 4,
  RABIT_DEVICE_UINT64 = 5,
  RABIT_DEVICE_FLOAT16 = 6,
  RABIT_DEVICE_FLOAT32 = 7,
  RABIT_DEVICE_FLOAT64 = 8,
  RABIT_DEVICE_BFLOAT16 = 9,
  RABIT_DEVICE_FLOAT8E4M3 = 10, /* with NCCL from 2.24 on */
  RABIT_DEVICE_FLOAT8E5M2 = 11  /* the same */
};

/* Operations, numbered as NCCL numbers them. */
enum RabitDeviceOperation {
  RABIT_DEVICE_SUM = 0,
  RABIT_DEVICE_PRODUCT = 1,
  RABIT_DEVICE_MAX = 2,
  RABIT_DEVICE_MIN = 3,
  RABIT_DEVICE_AVERAGE = 4 /* the sum, divided by the number of ranks */
};

/* The GPU of this rank: the n-th that CUDA_VISIBLE_DEVICES lets this process see for the n-th rank of a host,
 * counting on from the first when there are more ranks. Makes it the thread's current one, and gives its
 * number. To be called before memory is taken, unless the program chooses by itself. */
RABIT_DLL int RabitDeviceSelect(int* device);

/* Each of `count` elements of all ranks' recvbuf becomes the reduction of that element of all ranks' sendbuf.
 */
RABIT_DLL int RabitDeviceAllreduce(const void* sendbuf, void* recvbuf, size_t count, int type, int operation,
                                   void* stream);

/* `count` elements of all ranks' recvbuf become those of the root's sendbuf. */
RABIT_DLL int RabitDeviceBroadcast(const void* sendbuf, void* recvbuf, size_t count, int type, int root,
                                   void* stream);

/* All ranks' recvbuf, of count * world size elements, gets all ranks' sendbuf, of `count`, in rank order. */
RABIT_DLL int RabitDeviceAllgather(const void* sendbuf, void* recvbuf, size_t count, int type, void* stream);

/* sendbuf has count * world size elements; rank r's recvbuf gets elements [r * count, (r + 1) * count) of the
 * reduction. */
RABIT_DLL int RabitDeviceReduceScatter(const void* sendbuf, void* recvbuf, size_t count, int type,
                                       int operation, void* stream);

/* What is called between the two is put on its streams by the (outermost) end, as one group: faster for many
 * small buffers. */
RABIT_DLL int RabitDeviceGroupStart(void);
RABIT_DLL int RabitDeviceGroupEnd(void);

/* Returns when all work of the stream is done. Fails when a rank has been lost meanwhile, or has not come
 * within rabit_timeout_sec (with rabit_timeout=1), and says which one. */
RABIT_DLL int RabitDeviceSynchronize(void* stream);

/* How collectives run, for people, "NCCL 2.28.9"; empty before the first. Valid until the thread's next call.
 */
RABIT_DLL const char* RabitDeviceDescribe(void);

/* Why the last of these functions failed in this thread; valid until the next fails. */
RABIT_DLL const char* RabitDeviceGetLastError(void);

#ifdef __cplusplus

#include <dmlc/logging.h>

#include <cstdint>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace rabit {
namespace device {
inline namespace warren_v1 {

/// The code of an element type. Types of CUDA's own are known where CUDA's compiler reads this; elsewhere
/// take the C functions.
template <typename DType>
struct TypeOf;
#define RABIT_DEVICE_TYPE_(type, code) \
  template <>                          \
  struct TypeOf<type> {                \
    static const int value = code;     \
  }
RABIT_DEVICE_TYPE_(std::int8_t, RABIT_DEVICE_INT8);
RABIT_DEVICE_TYPE_(std::uint8_t, RABIT_DEVICE_UINT8);
RABIT_DEVICE_TYPE_(std::int32_t, RABIT_DEVICE_INT32);
RABIT_DEVICE_TYPE_(std::uint32_t, RABIT_DEVICE_UINT32);
RABIT_DEVICE_TYPE_(long, RABIT_DEVICE_INT64);                 // NOLINT(google-runtime-int)
RABIT_DEVICE_TYPE_(unsigned long, RABIT_DEVICE_UINT64);       // NOLINT(google-runtime-int)
RABIT_DEVICE_TYPE_(long long, RABIT_DEVICE_INT64);            // NOLINT(google-runtime-int)
RABIT_DEVICE_TYPE_(unsigned long long, RABIT_DEVICE_UINT64);  // NOLINT(google-runtime-int)
RABIT_DEVICE_TYPE_(float, RABIT_DEVICE_FLOAT32);
RABIT_DEVICE_TYPE_(double, RABIT_DEVICE_FLOAT64);
#ifdef __CUDACC__
RABIT_DEVICE_TYPE_(__half, RABIT_DEVICE_FLOAT16);
RABIT_DEVICE_TYPE_(__nv_bfloat16, RABIT_DEVICE_BFLOAT16);
#endif
#undef RABIT_DEVICE_TYPE_

/// Throws dmlc::Error with RabitDeviceGetLastError's text unless `result` is 0.
inline void Require(int result) {
  if (result != 0) throw dmlc::Error(RabitDeviceGetLastError());
}

/// As RabitDeviceSelect; returns the number.
inline int Select() {
  int device = 0;
  Require(RabitDeviceSelect(&device));
  return device;
}

/// As RabitDeviceAllreduce, with `operation` one of RabitDeviceOperation.
template <typename DType>
inline void Allreduce(const DType* sendbuf, DType* recvbuf, std::size_t count, RabitDeviceOperation operation,
                      void* stream) {
  Require(RabitDeviceAllreduce(sendbuf, recvbuf, count, TypeOf<DType>::value, operation, stream));
}
/// In place.
template <typename DType>
inline void Allreduce(DType* buffer, std::size_t count, RabitDeviceOperation operation, void* stream) {
  Allreduce(static_cast<const DType*>(buffer), buffer, count, operation, stream);
}

/// As RabitDeviceBroadcast, in place.
template <typename DType>
inline void Broadcast(DType* buffer, std::size_t count, int root, void* stream) {
  Require(RabitDeviceBroadcast(buffer, buffer, count, TypeOf<DType>::value, root, stream));
}

/// As RabitDeviceAllgather.
template <typename DType>
inline void Allgather(const DType* sendbuf, DType* recvbuf, std::size_t count, void* stream) {
  Require(RabitDeviceAllgather(sendbuf, recvbuf, count, TypeOf<DType>::value, stream));
}

/// As RabitDeviceReduceScatter.
template <typename DType>
inline void ReduceScatter(const DType* sendbuf, DType* recvbuf, std::size_t count,
                          RabitDeviceOperation operation, void* stream) {
  Require(RabitDeviceReduceScatter(sendbuf, recvbuf, count, TypeOf<DType>::value, operation, stream));
}

inline void GroupStart() {
  Require(RabitDeviceGroupStart());
}
inline void GroupEnd() {
  Require(RabitDeviceGroupEnd());
}

/// As RabitDeviceSynchronize.
inline void Synchronize(void* stream) {
  Require(RabitDeviceSynchronize(stream));
}

}  // namespace warren_v1
}  // namespace device
}  // namespace rabit

#endif /* __cplusplus */

#endif /* RABIT_DEVICE_H_ */
