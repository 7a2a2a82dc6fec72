// A file descriptor that closes itself: of sockets, events, memory, epoll. And closes itself in a process
// that is forked from this one: a connection lives as long as any process holds it, so that a child that
// outlives its parent would hide the parent's death from the other ranks.
#pragma once

#include <cstdint>
#include <utility>

namespace warren {

/// How many times this process and those it descends from were forked since this library was loaded: a
/// process that was forked in the middle of a call finds another number when it goes on.
std::uint64_t NumForks();

class CloseOnForkDescriptor {
 public:
  CloseOnForkDescriptor() = default;
  explicit CloseOnForkDescriptor(int fd) : fd_(fd) { Own(fd); }
  CloseOnForkDescriptor(CloseOnForkDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  CloseOnForkDescriptor& operator=(CloseOnForkDescriptor&& other) noexcept {
    if (this != &other) {
      Close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~CloseOnForkDescriptor() { Close(); }

  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  /// Somebody else closes it from now on, and has it in a forked process, too.
  int Release();
  /// In a forked process this does nothing to a descriptor that its parent had: it is closed there already,
  /// and its number may be somebody else's.
  void Close();

 private:
  static void Own(int fd);

  int fd_ = -1;
};

}  // namespace warren
