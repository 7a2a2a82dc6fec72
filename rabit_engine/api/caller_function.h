// Adapts the reduction functions that rabit's callers pass, which have MPI's signature, to the engine's
// reductions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rabit_engine/base/descriptor.h"
#include "rabit_engine/reduce/reduction.h"

namespace MPI {
/// Rabit's headers declare this class but do not define it. XGBoost's class has the same layout.
class Datatype {
 public:
  explicit Datatype(std::size_t size) : type_size(size) {}
  std::size_t type_size;
};
}  // namespace MPI

namespace warren::api {

using CallerReduceFunction = void(const void* src, void* dst, int count, const MPI::Datatype& type);

/// Throws Misuse in a process that was forked since NumForks returned `num_forks`. `function` describes the
/// caller's function that forked, e.g. "the reduction function".
void RequireNoFork(std::uint64_t num_forks, const char* function);

/// A caller's reduction function. Must outlive the reductions made from it. The constructor throws Misuse if
/// the function is null or the elements have 0 bytes.
class CallerFunction {
 public:
  CallerFunction(CallerReduceFunction* function, std::size_t element_bytes);

  /// Returns a reduction that passes the caller's function at most INT_MAX elements at a time, aligned to the
  /// largest power of two that divides the element size, up to 64 bytes.
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
