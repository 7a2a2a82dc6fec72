// A file descriptor with one owner, for all folders but rabit_engine, whose descriptors close in a forked
// process, too (rabit_engine/base/descriptor.h). Needs nothing else of the tree.
#pragma once

#include <unistd.h>

#include <utility>

namespace warren::posix {

/// Closes what it holds; to descriptors what std::unique_ptr is to memory. A negative one, as a call that
/// failed returns, stands for none. Not thread safe.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  /// It is the caller's to close.
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  /// Closes what it has, for this one.
  void reset(int fd = -1) {
    if (fd_ >= 0) (void)close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

}  // namespace warren::posix
