// One collective at one size: checked once, then timed.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/allreduce/world.h"

namespace warren::bench {

enum class Collective { kAllreduce, kBroadcast, kAllgather };

/// `bytes` is the size of the whole buffer on every rank, for kAllgather: with all the slices.
struct Case {
  Collective collective;
  std::size_t bytes;
};

/// Reads "allreduce:4096". Throws std::invalid_argument that says what was expected.
Case ParseCase(const std::string& text);
std::string Name(Collective collective);

struct Effort {
  int samples = 5;         ///< how many are wanted
  int least_samples = 3;   ///< taken even when the time is up
  double limit_s = 1.5;    ///< no more samples after it; after ten times as long, the first is the last
  double block_s = 0.005;  ///< a sample is a block of as many operations as take at least this long
};

struct Timing {
  std::size_t operations;       ///< in a block
  std::vector<double> seconds;  ///< one operation's time, a value for each block
};

/// Some rank has got something else than it should.
class WrongResult : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Collective; every rank gets the same result. Throws WrongResult if that of the checked operation is wrong.
///
/// A block is: barrier; clock; operations; clock. Its time is that of the slowest rank. The data are zeros,
/// so that sums stay finite. Broadcasts take each rank as root in turn: with a fixed root it would run ahead
/// of the others, and the time would be that of sending instead of that of arriving.
Timing Measure(World& world, const Case& what, const Effort& effort);

}  // namespace warren::bench
