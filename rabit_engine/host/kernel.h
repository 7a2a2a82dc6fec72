// Linux system calls for ranks that share memory: futexes, the current core, and giving back pages. On other
// systems no memory is shared (without_shared_memory.cc).
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace warren {

// Futex operations on a word that several processes share.

/// If the word holds `seen`, sleeps until FutexWakeAll, a signal, or the limit.
void FutexWait(std::atomic<std::uint32_t>& word, std::uint32_t seen, std::chrono::nanoseconds limit) noexcept;
void FutexWakeAll(std::atomic<std::uint32_t>& word) noexcept;

/// The core this thread runs on, or -1 if unknown.
int CurrentCore() noexcept;

/// Gives whole pages of a memfd back to the kernel; they read as zero afterwards. Has no effect if the kernel
/// cannot do this.
void GiveBackPages(int memory, std::size_t offset, std::size_t bytes) noexcept;

}  // namespace warren
