/* Collectives on device memory, in C and C++, between RabitInit and RabitFinalize (rabit/c_api.h, rabit.h).
 * Experimental: tested on one GPU, never on several. warren/c_api.h has the same calls with handles.
 *
 * If each rank has its own GPU, NCCL carries out the collectives; ranks that share a GPU access each other's
 * memory; if neither is possible, the data goes through the host. The first call determines which way is
 * used, and rank 0 prints a line that names it. See docs/how-to/gpu.md. librabit loads librabit_cuda.so,
 * which loads NCCL, on first use.
 *
 * Buffers must be device memory of one GPU: the GPU of the first buffer ever passed. All ranks make the same
 * calls in the same order. `stream` is a cudaStream_t (NULL: the default stream). In place:
 * sendbuf == recvbuf for RabitDeviceAllreduce and RabitDeviceBroadcast,
 * sendbuf == recvbuf + rank * count for RabitDeviceAllgather,
 * recvbuf == sendbuf + rank * count for RabitDeviceReduceScatter; otherwise the two buffers must not overlap.
 *
 * Before LoadCheckPoint, and in jobs without a tracker, a call enqueues its work on its stream, after the
 * work already there, and may return before its work is done. With NCCL (or with one rank), once a first call
 * has been made without capture, such a call can be captured into a CUDA graph, by all ranks or none; the
 * graph must be destroyed before Finalize. Otherwise capture is refused. Wait with RabitDeviceSynchronize,
 * which notices the loss of a rank, rather than with cudaStreamSynchronize: after a loss the latter returns
 * within a second with NCCL, but with arbitrary results, and may not return at all on a shared GPU. After
 * LoadCheckPoint, in jobs with a tracker, a call returns only when its result is complete and stored, so that
 * lost ranks can be restarted.
 *
 * Errors: the C functions return 0 on success, else -1, and RabitDeviceGetLastError returns the reason; the
 * C++ functions throw dmlc::Error. After an error in a collective all further calls fail. A call that is
 * refused, because of its arguments or because its stream is captured, changes nothing. If a call of a group
 * is refused because of a capture, the end of the group refuses all calls of the group. Threads: as in
 * rabit.h. */
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
  RABIT_DEVICE_FLOAT8E4M3 = 10, /* NCCL, if used, must be 2.24 or later */
  RABIT_DEVICE_FLOAT8E5M2 = 11  /* NCCL, if used, must be 2.24 or later */
};

/* Operations, numbered as NCCL numbers them. */
enum RabitDeviceOperation {
  RABIT_DEVICE_SUM = 0,
  RABIT_DEVICE_PRODUCT = 1,
  RABIT_DEVICE_MAX = 2,
  RABIT_DEVICE_MIN = 3,
  RABIT_DEVICE_AVERAGE = 4 /* the sum, divided by the number of ranks */
};

/* Selects a GPU for this rank: the visible GPU (CUDA_VISIBLE_DEVICES) whose number is the local rank modulo
 * the number of visible GPUs. Makes it the thread's current device and stores its number in *device, unless
 * `device` is NULL. Call it before allocating device memory, unless the program chooses a GPU itself. */
RABIT_DLL int RabitDeviceSelect(int* device);

/* On every rank, recvbuf[i] becomes the reduction of sendbuf[i] over all ranks, for each i below `count`. */
RABIT_DLL int RabitDeviceAllreduce(const void* sendbuf, void* recvbuf, size_t count, int type, int operation,
                                   void* stream);

/* Copies `count` elements from the root's sendbuf to every rank's recvbuf. */
RABIT_DLL int RabitDeviceBroadcast(const void* sendbuf, void* recvbuf, size_t count, int type, int root,
                                   void* stream);

/* Every rank's recvbuf (count * world size elements) gets all sendbufs (`count` elements each), in rank
 * order. */
RABIT_DLL int RabitDeviceAllgather(const void* sendbuf, void* recvbuf, size_t count, int type, void* stream);

/* sendbuf has count * world size elements; rank r's recvbuf gets elements [r * count, (r + 1) * count) of the
 * reduction. */
RABIT_DLL int RabitDeviceReduceScatter(const void* sendbuf, void* recvbuf, size_t count, int type,
                                       int operation, void* stream);

/* Calls between these two functions are enqueued on their streams as one group when the outermost group ends,
 * which is faster for many small buffers. */
RABIT_DLL int RabitDeviceGroupStart(void);
RABIT_DLL int RabitDeviceGroupEnd(void);

/* Returns when all work on the stream is done; before the first collective, returns immediately. Fails,
 * naming the rank, if a rank has been lost in the meantime or did not arrive within rabit_timeout_sec (with
 * rabit_timeout=1). */
RABIT_DLL int RabitDeviceSynchronize(void* stream);

/* A human-readable description of the way in which collectives run, e.g. "NCCL 2.28.9"; empty before the
 * first collective and after an error. Valid until the thread's next call of this function. */
RABIT_DLL const char* RabitDeviceDescribe(void);

/* The message of this thread's last call that failed; valid until the thread's next error. */
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

/// The code of an element type. CUDA's own types have a code only if CUDA's compiler compiles this header;
/// otherwise use the C functions.
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

/// Like RabitDeviceSelect; returns the device number.
inline int Select() {
  int device = 0;
  Require(RabitDeviceSelect(&device));
  return device;
}

/// Like RabitDeviceAllreduce.
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

/// Like RabitDeviceBroadcast, in place.
template <typename DType>
inline void Broadcast(DType* buffer, std::size_t count, int root, void* stream) {
  Require(RabitDeviceBroadcast(buffer, buffer, count, TypeOf<DType>::value, root, stream));
}

/// Like RabitDeviceAllgather.
template <typename DType>
inline void Allgather(const DType* sendbuf, DType* recvbuf, std::size_t count, void* stream) {
  Require(RabitDeviceAllgather(sendbuf, recvbuf, count, TypeOf<DType>::value, stream));
}

/// Like RabitDeviceReduceScatter.
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

/// Like RabitDeviceSynchronize.
inline void Synchronize(void* stream) {
  Require(RabitDeviceSynchronize(stream));
}

}  // namespace warren_v1
}  // namespace device
}  // namespace rabit

#endif /* __cplusplus */

#endif /* RABIT_DEVICE_H_ */
