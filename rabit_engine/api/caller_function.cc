// Splits the work for callers' functions into aligned pieces of at most INT_MAX elements.
#include "rabit_engine/api/caller_function.h"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "rabit_engine/base/error.h"

namespace warren::api {
namespace {

constexpr std::size_t kMaxAlignment = 64;
constexpr std::size_t kBounceBytes = std::size_t{16} << 10;  // two buffers fit the L1 cache

bool IsAligned(const void* pointer, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0;
}

struct FreeAligned {
  void operator()(char* memory) const { ::operator delete (memory, std::align_val_t{kMaxAlignment}); }
};
using AlignedBytes = std::unique_ptr<char, FreeAligned>;

AlignedBytes Allocate(std::size_t bytes) {
  return AlignedBytes(static_cast<char*>(::operator new (bytes, std::align_val_t{kMaxAlignment})));
}

}  // namespace

CallerFunction::CallerFunction(CallerReduceFunction* function, std::size_t element_bytes)
    : function_(function),
      element_bytes_(element_bytes),
      alignment_(std::min(element_bytes & (~element_bytes + 1), kMaxAlignment)) {
  if (function == nullptr) throw Misuse("the reduction function is NULL");
  if (element_bytes == 0) throw Misuse("elements of 0 bytes cannot be reduced");
}

void CallerFunction::Call(const void* src, void* dst, std::size_t count) const {
  function_(src, dst, static_cast<int>(count), MPI::Datatype(element_bytes_));
  RequireNoFork(num_forks_, "the reduction function");
}

void RequireNoFork(std::uint64_t num_forks, const char* function) {
  if (NumForks() == num_forks) return;
  throw Misuse(
      std::string(function) +
      " forked this process, which is not part of the job, and returned in it: end the child process inside the function");
}

void CallerFunction::Run(const void* src, void* dst, std::size_t count, void* self_pointer) {
  const auto& self = *static_cast<const CallerFunction*>(self_pointer);
  const std::size_t element_bytes = self.element_bytes_;
  const auto* from = static_cast<const char*>(src);
  auto* to = static_cast<char*>(dst);

  if (IsAligned(src, self.alignment_) && IsAligned(dst, self.alignment_)) {
    while (count > 0) {
      const std::size_t piece = std::min<std::size_t>(count, INT_MAX);
      self.Call(from, to, piece);
      from += piece * element_bytes;
      to += piece * element_bytes;
      count -= piece;
    }
    return;
  }

  const std::size_t most = std::min(count, std::max<std::size_t>(kBounceBytes / element_bytes, 1));
  if (most == 0) return;
  const AlignedBytes left = Allocate(most * element_bytes);
  const AlignedBytes right = Allocate(most * element_bytes);
  while (count > 0) {
    const std::size_t piece = std::min(count, most);
    const std::size_t bytes = piece * element_bytes;
    std::memcpy(left.get(), to, bytes);
    std::memcpy(right.get(), from, bytes);
    self.Call(right.get(), left.get(), piece);
    std::memcpy(to, left.get(), bytes);
    from += bytes;
    to += bytes;
    count -= piece;
  }
}

}  // namespace warren::api
