// A stand-in for the kernels (reduce_kernels.cu): the same operations on elements, in a loop that runs on a
// stream of the stand-in for CUDA.
#include <memory>

#include "rabit_engine/device/cuda/elements.h"
#include "rabit_engine/device/cuda/reduce_kernels.h"

namespace warren::device {
namespace {

struct Work {
  Buffers inputs;
  Buffers outputs;
  std::size_t begin;
  std::size_t end;
};

template <ReduceOp operation, typename T>
void Run(void* argument) {
  const std::unique_ptr<const Work> work(static_cast<const Work*>(argument));
  for (std::size_t i = work->begin; i < work->end; ++i) {
    const T result = CombineInOrder<operation, T>(
        work->inputs.count, [&](int rank) { return static_cast<const T*>(work->inputs.of[rank])[i]; });
    for (int output = 0; output < work->outputs.count; ++output)
      static_cast<T*>(work->outputs.of[output])[i] = result;
  }
}

template <typename T>
cudaHostFn_t Choose(ReduceOp operation) {
  switch (operation) {
    case ReduceOp::kSum:
      return Run<ReduceOp::kSum, T>;
    case ReduceOp::kProduct:
      return Run<ReduceOp::kProduct, T>;
    case ReduceOp::kMax:
      return Run<ReduceOp::kMax, T>;
    case ReduceOp::kMin:
      return Run<ReduceOp::kMin, T>;
    default:
      return Run<ReduceOp::kAverage, T>;
  }
}

cudaHostFn_t Choose(Type type, ReduceOp operation) {
  switch (type) {
    case Type::kInt8:
      return Choose<std::int8_t>(operation);
    case Type::kUint8:
      return Choose<std::uint8_t>(operation);
    case Type::kInt32:
      return Choose<std::int32_t>(operation);
    case Type::kUint32:
      return Choose<std::uint32_t>(operation);
    case Type::kInt64:
      return Choose<std::int64_t>(operation);
    case Type::kUint64:
      return Choose<std::uint64_t>(operation);
    case Type::kFloat16:
      return Choose<__half>(operation);
    case Type::kFloat32:
      return Choose<float>(operation);
    case Type::kFloat64:
      return Choose<double>(operation);
    case Type::kBFloat16:
      return Choose<__nv_bfloat16>(operation);
    case Type::kFloat8E4M3:
      return Choose<__nv_fp8_e4m3>(operation);
    default:
      return Choose<__nv_fp8_e5m2>(operation);
  }
}

}  // namespace

void LaunchReduce(Type type, ReduceOp operation, const Buffers& inputs, const Buffers& outputs,
                  std::size_t begin, std::size_t end, cudaStream_t stream) {
  cudaLaunchHostFunc(stream, Choose(type, operation), new Work{inputs, outputs, begin, end});
}

}  // namespace warren::device
