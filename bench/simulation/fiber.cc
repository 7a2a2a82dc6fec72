#include "bench/simulation/fiber.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

namespace warren::simulation {
namespace {

/// The fiber that this thread switches to. A global, since makecontext passes only ints.
thread_local Fiber* resumed = nullptr;

}  // namespace

Stacks::Stacks(std::size_t count, std::size_t bytes_each)
    : stride_(bytes_each + kGuardBytes), bytes_(count * stride_) {
  if (bytes_ == 0) return;
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap of stacks");
  begin_ = static_cast<std::byte*>(memory);
  for (std::size_t i = 0; i < count; ++i) {
    // If the system allows no more mappings, the remaining stacks have no guard pages.
    if (mprotect(begin_ + i * stride_, kGuardBytes, PROT_NONE) != 0) break;
  }
}

Stacks::~Stacks() {
  if (begin_ != nullptr) munmap(begin_, bytes_);
}

Fiber::Fiber(void* stack, std::size_t stack_bytes, std::function<void()> body) : body_(std::move(body)) {
  getcontext(&own_);
  own_.uc_stack.ss_sp = stack;
  own_.uc_stack.ss_size = stack_bytes;
  own_.uc_link = &caller_;
  makecontext(&own_, &Fiber::Enter, 0);
}

void Fiber::Enter() {
  Fiber* const self = resumed;
  try {
    self->body_();
  } catch (...) {
    self->error_ = std::current_exception();
  }
  self->finished_ = true;
}

void Fiber::Resume() {
  resumed = this;
  swapcontext(&caller_, &own_);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Fiber::Suspend() {
  swapcontext(&own_, &caller_);
}

}  // namespace warren::simulation
