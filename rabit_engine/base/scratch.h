// Scratch memory: uninitialized, aligned to a cache line.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace warren {

class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(std::size_t bytes) : data_(static_cast<std::byte*>(operator new(bytes, kAlignment))) {}
  /// nullptr if default-constructed.
  std::byte* data() const { return data_.get(); }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(std::byte* data) const { operator delete(data, kAlignment); }
  };
  std::unique_ptr<std::byte, Free> data_;
};

}  // namespace warren
