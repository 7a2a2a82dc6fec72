#include "bench/simulation/fiber.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

namespace warren::simulation {

Stacks::Stacks(std::size_t count, std::size_t bytes_each)
    : stride_(bytes_each + kGuardBytes), bytes_(count * stride_) {
  if (bytes_ == 0) return;
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap of stacks");
  begin_ = static_cast<std::byte*>(memory);
  for (std::size_t i = 0; i < count; ++i) {
    // Where the system allows no more mappings the rest go without.
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
  // makecontext passes ints.
  const auto address = reinterpret_cast<std::uintptr_t>(this);
  makecontext(&own_, reinterpret_cast<void (*)()>(&Fiber::Enter), 2, static_cast<unsigned>(address >> 32),
              static_cast<unsigned>(address));
}

void Fiber::Enter(unsigned high, unsigned low) {
  auto* self = reinterpret_cast<Fiber*>(static_cast<std::uintptr_t>(high) << 32 | low);
  try {
    self->body_();
  } catch (...) {
    self->error_ = std::current_exception();
  }
  self->finished_ = true;
}

void Fiber::Resume() {
  swapcontext(&caller_, &own_);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Fiber::Suspend() {
  swapcontext(&own_, &caller_);
}

}  // namespace warren::simulation
