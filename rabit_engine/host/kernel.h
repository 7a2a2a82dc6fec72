// What the memory that ranks share asks of the kernel, besides a mapping. Linux alone has all of it:
// elsewhere no memory is shared (without_shared_memory.cc).
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace warren {

// The futex on a word that processes share.

/// Sleeps while the word holds `seen`, until FutexWakeAll, a signal, or the limit.
void FutexWait(std::atomic<std::uint32_t>& word, std::uint32_t seen, std::chrono::nanoseconds limit) noexcept;
void FutexWakeAll(std::atomic<std::uint32_t>& word) noexcept;

/// That this thread runs on now; -1 where nobody says.
int CurrentCore() noexcept;

/// Whole pages of a memfd, which are zero from then on. Where the kernel cannot, they stay.
void GiveBackPages(int memory, std::size_t offset, std::size_t bytes) noexcept;

}  // namespace warren
