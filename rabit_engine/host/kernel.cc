#include "rabit_engine/host/kernel.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace warren {

// Other processes sleep on the word, too, so FUTEX_PRIVATE_FLAG is not set.

void FutexWait(std::atomic<std::uint32_t>& word, std::uint32_t seen,
               std::chrono::nanoseconds limit) noexcept {
  constexpr long kPerSecond = 1'000'000'000;
  const timespec timeout{limit.count() / kPerSecond, limit.count() % kPerSecond};
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, &timeout, nullptr, 0);
}

void FutexWakeAll(std::atomic<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

int CurrentCore() noexcept {
  return sched_getcpu();
}

void GiveBackPages(int memory, std::size_t offset, std::size_t bytes) noexcept {
  fallocate(memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
            static_cast<off_t>(bytes));
}

}  // namespace warren
