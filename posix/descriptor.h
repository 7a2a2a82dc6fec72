// A file descriptor with one owner. rabit_engine has another class, whose descriptors are also closed in
// forked processes (rabit_engine/base/descriptor.h). Depends on nothing else in the tree.
#pragma once

#include <unistd.h>

#include <utility>

namespace warren::posix {

/// Owns a file descriptor and closes it in the destructor. A negative descriptor, such as the result of a
/// failed call, counts as empty. Not thread-safe.
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
  /// Gives up ownership: the caller must close the descriptor.
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  /// Closes the current descriptor and takes ownership of `fd`.
  void reset(int fd = -1) {
    if (fd_ >= 0) (void)close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

}  // namespace warren::posix
