// Reduction functions as rabit's callers write them, with MPI's signature, as the engine's reductions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rabit_engine/base/descriptor.h"
#include "rabit_engine/reduce/reduction.h"

namespace MPI {
/// What rabit's headers only name. XGBoost's has the same layout.
class Datatype {
 public:
  explicit Datatype(std::size_t size) : type_size(size) {}
  std::size_t type_size;
};
}  // namespace MPI

namespace warren::api {

using CallerReduceFunction = void(const void* src, void* dst, int count, const MPI::Datatype& type);

/// Throws Misuse in a process that was forked since NumForks returned this, by a function of the caller's.
void RequireNoFork(std::uint64_t num_forks, const char* function);

/// Has to outlive the reductions made of it.
class CallerFunction {
 public:
  CallerFunction(CallerReduceFunction* function, std::size_t element_bytes);

  /// The caller's function is given at most INT_MAX elements at a time, aligned to the largest power of two
  /// that divides the element size, up to 64 bytes.
  Reduction reduction() { return Reduction::Custom(&CallerFunction::Run, this, element_bytes_); }

 private:
  static void Run(const void* src, void* dst, std::size_t count, void* self);
  void Call(const void* src, void* dst, std::size_t count) const;

  CallerReduceFunction* function_;
  std::size_t element_bytes_;
  std::size_t alignment_;
  std::uint64_t num_forks_ = NumForks();
};

}  // namespace warren::api
