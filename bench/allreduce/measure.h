// Measures one collective at one size: checks it once, then times it sample by sample.
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

/// `bytes` is the size of the whole buffer on every rank, including all slices for kAllgather, kReduceScatter
/// and kAllToAll; 0 for kBarrier and kSplit; the size of each of the 1,000 allreduces for kSums.
struct Case {
  Collective collective;
  std::size_t bytes;
};

/// Parses text like "allreduce:4096". Throws std::invalid_argument naming what was expected.
Case ParseCase(const std::string& text);
std::string Name(Collective collective);

struct Effort {
  int samples = 5;         ///< target number of samples
  int least_samples = 3;   ///< minimum number of samples, taken in up to 10 times limit_s
  double limit_s = 1.5;    ///< stop after this time, but not before least_samples are taken
  double block_s = 0.005;  ///< a sample is a block of operations that takes at least this long
};

/// Thrown if an operation gives a wrong result on this rank.
class WrongResult : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One case in one world. All ranks make the same calls and get the same results.
///
/// A sample is a block: a barrier, then operations between two readings of the clock. Its time is that of the
/// slowest rank. Samples sum zeros, so that sums stay finite. Each rank in turn is the root of a broadcast: a
/// fixed root would run ahead of the others, and the time of sending would be measured instead of the time of
/// arrival.
class Measurement {
 public:
  /// Runs the operation once on numbers that differ by rank and position, checks the result, and determines
  /// how many operations a block of `block_s` seconds needs. Throws WrongResult on each rank whose result is
  /// wrong, and std::invalid_argument if the number of bytes does not fit the collective.
  Measurement(World& world, const Case& what, double block_s);
  ~Measurement();
  Measurement(const Measurement&) = delete;
  Measurement& operator=(const Measurement&) = delete;

  /// Measures a block; returns the seconds per operation.
  double Sample();
  /// Seconds from the construction of this object to the end of the last block, on the slowest rank.
  double elapsed() const;

 private:
  class Operation;
  class Stopwatch;

  std::unique_ptr<Stopwatch> watch_;
  std::unique_ptr<Operation> operation_;
  std::size_t operations_ = 1;  ///< in a block
};

/// Takes samples according to `effort`. Returns the seconds of one operation in each.
std::vector<double> Measure(World& world, const Case& what, const Effort& effort);

}  // namespace warren::bench
