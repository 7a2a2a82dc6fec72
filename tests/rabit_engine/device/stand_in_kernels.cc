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

}  // namespace

void LaunchReduce(Type type, ReduceOp operation, const Buffers& inputs, const Buffers& outputs,
                  std::size_t begin, std::size_t end, cudaStream_t stream) {
  WithElement(type, [&](auto element) {
    WithOperation(operation, [&](auto constant) {
      cudaLaunchHostFunc(stream, Run<decltype(constant)::value, decltype(element)>,
                         new Work{inputs, outputs, begin, end});
    });
  });
}

}  // namespace warren::device
