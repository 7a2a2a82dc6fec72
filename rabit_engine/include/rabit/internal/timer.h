// A monotonic clock, for programs that measure their own run time.
#ifndef RABIT_INTERNAL_TIMER_H_
#define RABIT_INTERNAL_TIMER_H_

#include <chrono>

#include "rabit/base.h"

namespace rabit {
namespace utils {
inline namespace warren_v1 {

/// Seconds since an arbitrary fixed point in time; never decreases.
inline double GetTime() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace warren_v1
}  // namespace utils
}  // namespace rabit
#endif  // RABIT_INTERNAL_TIMER_H_
