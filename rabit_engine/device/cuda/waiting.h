// Functions that wait for a GPU or NCCL, and meanwhile check whether other ranks are lost.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "rabit_engine/device/cuda/error.h"
#include "rabit_engine/device/plugin.h"

namespace warren::device {

/// Returns when `done()` is true. Does not occupy the core while waiting: yields at first, since most waits
/// are short, then sleeps for growing intervals of up to a millisecond. Throws HostFailed if a rank is lost
/// or the call has taken too long, and whatever `done` throws.
template <typename Done>
void WaitFor(const WarrenDeviceHost& host, Done&& done) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds kYielding{200};
  constexpr std::chrono::milliseconds kCheckInterval{5};
  constexpr std::chrono::microseconds kLongestSleep{1000};
  if (done()) return;
  const Clock::time_point begin = Clock::now();
  Clock::time_point next_check = begin + kCheckInterval;
  std::chrono::microseconds sleep{20};
  while (!done()) {
    const Clock::time_point now = Clock::now();
    if (now >= next_check) {
      CheckHost(host.check(host.context));
      next_check = now + kCheckInterval;
    }
    if (now - begin < kYielding) {
      sched_yield();
      continue;
    }
    std::this_thread::sleep_for(sleep);
    sleep = std::min(kLongestSleep, sleep + sleep / 4);
  }
}

/// Throws HostFailed if WarrenDeviceHost::check fails within two seconds, otherwise `error`. If a rank is
/// gone, NCCL often reports an error before our own links show which rank it is.
[[noreturn]] void ThrowUnlessLost(const WarrenDeviceHost& host, const CudaError& error);

}  // namespace warren::device
