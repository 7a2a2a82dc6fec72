// The kernel's futex on a word that processes share.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace warren {

/// Sleeps while the word holds `seen`, until FutexWakeAll, a signal, or the limit.
void FutexWait(std::atomic<std::uint32_t>& word, std::uint32_t seen, std::chrono::nanoseconds limit) noexcept;
void FutexWakeAll(std::atomic<std::uint32_t>& word) noexcept;

}  // namespace warren
