#include "rabit_engine/host/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace warren {

// Other processes sleep on the word too: no FUTEX_PRIVATE_FLAG.

void FutexWait(std::atomic<std::uint32_t>& word, std::uint32_t seen,
               std::chrono::nanoseconds limit) noexcept {
  constexpr long kPerSecond = 1'000'000'000;
  const timespec timeout{limit.count() / kPerSecond, limit.count() % kPerSecond};
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, &timeout, nullptr, 0);
}

void FutexWakeAll(std::atomic<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace warren
