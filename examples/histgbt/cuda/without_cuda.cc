// Replaces the CUDA backend if histgbt is built without CUDA.
#include <stdexcept>

#include "examples/histgbt/backend.h"

namespace warren::histgbt {

void SelectGpu() {
  throw std::runtime_error("device=cuda: this histgbt was built without CUDA");
}

std::unique_ptr<Backend> MakeCudaBackend(const TrainingRows& /*rows*/) {
  SelectGpu();
  return nullptr;
}

}  // namespace warren::histgbt
