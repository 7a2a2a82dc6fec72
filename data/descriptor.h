// The owner of a file descriptor. Inside of data/ only.
#pragma once

#include <unistd.h>

#include <utility>

namespace warren::data::internal {

/// Closes what it holds. Moves, and is not copied.
class Descriptor {
 public:
  Descriptor() = default;
  /// A negative one, as a call that failed returns, stands for none.
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) (void)close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(other.Release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  bool IsOpen() const { return fd_ >= 0; }
  int get() const { return fd_; }
  /// It is the caller's to close.
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

}  // namespace warren::data::internal
