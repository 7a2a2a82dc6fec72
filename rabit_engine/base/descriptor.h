// Owns a file descriptor, for example of a socket or of shared memory. It is closed in the destructor and
// also in processes forked from this process: a connection stays open while any process holds it, so a child
// that outlives its parent would hide the parent's death from the other ranks.
#pragma once

#include <cstdint>
#include <utility>

namespace warren {

/// A number that is greater in a forked process than in its parent. If it has changed since an object was
/// made, the code is running in a process that was forked in the meantime.
std::uint64_t NumForks();

class CloseOnForkDescriptor {
 public:
  CloseOnForkDescriptor() = default;
  explicit CloseOnForkDescriptor(int fd) : fd_(fd), num_forks_(NumForks()) { Own(fd); }
  CloseOnForkDescriptor(CloseOnForkDescriptor&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), num_forks_(other.num_forks_) {}
  CloseOnForkDescriptor& operator=(CloseOnForkDescriptor&& other) noexcept {
    if (this != &other) {
      Close();
      fd_ = std::exchange(other.fd_, -1);
      num_forks_ = other.num_forks_;
    }
    return *this;
  }
  ~CloseOnForkDescriptor() { Close(); }

  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  /// Gives up ownership. The caller must close the descriptor, which from now on also stays open in forked
  /// processes.
  int Release();
  /// In a forked process, does nothing to a descriptor inherited from the parent: it is already closed, and
  /// its number may have been reused.
  void Close();

 private:
  static void Own(int fd);

  int fd_ = -1;
  std::uint64_t num_forks_ = 0;  ///< NumForks() when the descriptor was taken over
};

}  // namespace warren
