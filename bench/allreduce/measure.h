// One collective at one size: checked once, then timed, a sample at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/allreduce/world.h"

namespace warren::bench {

enum class Collective {
  kAllreduce,
  kBroadcast,
  kAllgather,
  kReduceScatter,
  kAllToAll,
  kBarrier,
  kSplit,
  kSums
};

/// `bytes` is the size of the whole buffer on every rank, for kAllgather, kReduceScatter and kAllToAll: with
/// all the slices; for kBarrier and kSplit 0; for kSums, 1,000 allreduces, that of each.
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

/// One case in one world. All ranks make the same calls, and get the same results.
///
/// A sample is a block: barrier; clock; operations; clock. Its time is that of the slowest rank. The data are
/// zeros, so that sums stay finite. Broadcasts take each rank as root in turn: with a fixed root it would run
/// ahead of the others, and the time would be that of sending instead of that of arriving.
class Measurement {
 public:
  /// Does the operation once on numbers that tell ranks and places apart, and finds out how many make a
  /// block of `block_s` seconds. Throws WrongResult, on the rank that has it.
  Measurement(World& world, const Case& what, double block_s);
  ~Measurement();
  Measurement(const Measurement&) = delete;
  Measurement& operator=(const Measurement&) = delete;

  /// In a block.
  std::size_t operations() const { return operations_; }
  /// Seconds of one operation.
  double Sample();
  /// Seconds since the beginning, of the slowest rank, at the end of the last block.
  double elapsed() const;

 private:
  class Operation;
  class Stopwatch;

  std::unique_ptr<Stopwatch> watch_;
  std::unique_ptr<Operation> operation_;
  std::size_t operations_ = 1;
};

/// As many samples as `effort` says.
Timing Measure(World& world, const Case& what, const Effort& effort);

}  // namespace warren::bench
