// A stand-in for examples/histgbt/cuda/launch.cu, for the GPUs of the stand-in for CUDA
// (tests/rabit_engine/device). Runs the kernels' own source, one block after the other, and within each phase
// one thread after the other. Shared memory initially contains garbage, as on a GPU.
#include <cstddef>
#include <memory>
#include <vector>

#include "examples/histgbt/cuda/kernels.h"
#include "examples/histgbt/cuda/launch.h"

namespace warren::histgbt {
namespace {

template <typename Kernel>
struct Work {
  Kernel kernel;
  unsigned blocks;
};

template <typename Kernel>
void RunWork(void* argument) {
  const std::unique_ptr<const Work<Kernel>> work(static_cast<const Work<Kernel>*>(argument));
  constexpr std::byte kNonsense{0xa5};
  std::vector<std::max_align_t> memory(work->kernel.SharedBytes() / sizeof(std::max_align_t) + 1);
  for (unsigned block = 0; block < work->blocks; ++block) {
    std::fill_n(reinterpret_cast<std::byte*>(memory.data()), memory.size() * sizeof(std::max_align_t),
                kNonsense);
    for (int phase = 0; phase < work->kernel.Phases(); ++phase) {
      // The threads run in a mixed order, so that results are likely to be wrong if a thread reads data that
      // another thread writes in the same phase. Reading them is allowed only in later phases.
      for (unsigned i = 0; i < kThreads; ++i)
        work->kernel.Run(phase, Thread{i * 97 % kThreads, block, work->blocks}, memory.data());
    }
  }
}

}  // namespace

template <typename Kernel>
void Launch(const Kernel& kernel, unsigned blocks, cudaStream_t stream) {
  cudaLaunchHostFunc(stream, RunWork<Kernel>, new Work<Kernel>{kernel, blocks});
}

HISTGBT_INSTANTIATE_LAUNCH

}  // namespace warren::histgbt
