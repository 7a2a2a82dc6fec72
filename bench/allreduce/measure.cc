#include "bench/allreduce/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace warren::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::pair<Collective, const char*> kNames[] = {
    {Collective::kAllreduce, "allreduce"}, {Collective::kBroadcast, "broadcast"},
    {Collective::kAllgather, "allgather"}, {Collective::kReduceScatter, "reduce-scatter"},
    {Collective::kAllToAll, "all-to-all"}, {Collective::kBarrier, "barrier"},
    {Collective::kSplit, "split"},         {Collective::kSums, "1000-sums"}};
constexpr std::size_t kNumberOfSums = 1000;

bool InSlices(Collective collective) {
  return collective == Collective::kAllgather || collective == Collective::kReduceScatter ||
         collective == Collective::kAllToAll;
}
bool WithoutBytes(Collective collective) {
  return collective == Collective::kBarrier || collective == Collective::kSplit;
}
/// A prime, so that a swapped, skipped or repeated block does not go unnoticed. Small enough that sums over
/// hundreds of ranks are exact in a float.
constexpr std::size_t kPatternLength = 8191;
constexpr std::size_t kMostOperations = 1'000'000;
/// An operation that takes longer than this many times the duration of a block is not warmed up.
constexpr double kSlowBlocks = 1000;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Calls visit(element, j) with j = 0, 1, ..., kPatternLength - 1, 0, 1, ... along the buffer.
template <typename Visit>
void ForEachInPattern(std::vector<float>& buffer, Visit visit) {
  for (std::size_t begin = 0; begin < buffer.size(); begin += kPatternLength) {
    const std::size_t length = std::min(kPatternLength, buffer.size() - begin);
    for (std::size_t j = 0; j < length; ++j) visit(buffer[begin + j], j);
  }
}

}  // namespace

std::string Name(Collective collective) {
  for (const auto& [value, name] : kNames)
    if (value == collective) return name;
  return "?";
}

Case ParseCase(const std::string& text) {
  const auto colon = text.find(':');
  for (const auto& [value, name] : kNames)
    if (colon != std::string::npos && text.substr(0, colon) == name)
      return {value, std::stoull(text.substr(colon + 1))};
  throw std::invalid_argument(
      fmt::format("'{}': expected a collective, such as allreduce, a colon and a number of bytes", text));
}

/// A collective with its buffer. The root of a broadcast is the rank after the previous root. Every rank
/// rewrites its slice before an allgather, so that ranks that read the slice in place do not have it in their
/// caches.
class Measurement::Operation {
 public:
  Operation(World& world, const Case& what)
      : world_(world),
        what_(what),
        buffer_(what.bytes / sizeof(float) * (what.collective == Collective::kSums ? kNumberOfSums : 1)) {
    const std::size_t unit = sizeof(float) * (InSlices(what.collective) ? world.size() : 1);
    if ((what.bytes == 0) != WithoutBytes(what.collective) || what.bytes % unit != 0)
      throw std::invalid_argument(
          fmt::format("{} of {} bytes: expected a multiple of {}", Name(what.collective), what.bytes, unit));
    if (what.collective == Collective::kAllToAll) sent_.resize(buffer_.size());
    world.Prepare(buffer_.data(), buffer_.size());
  }

  void Run() {
    switch (what_.collective) {
      case Collective::kAllreduce:
        return world_.Allreduce(buffer_.data(), buffer_.size());
      case Collective::kBroadcast:
        root_ = (root_ + 1) % world_.size();
        return world_.Broadcast(buffer_.data(), what_.bytes, root_);
      case Collective::kAllgather:
        RenewOwnSlice();
        return world_.Allgather(buffer_.data(), what_.bytes / world_.size());
      case Collective::kReduceScatter:
        return world_.ReduceScatter(buffer_.data(), buffer_.size() / world_.size());
      case Collective::kAllToAll:
        return world_.AllToAll(sent_.data(), buffer_.data(), what_.bytes / world_.size());
      case Collective::kBarrier:
        return world_.Barrier();
      case Collective::kSplit:
        return world_.Split(world_.size() > 2 ? world_.rank() % 2 : 0);
      case Collective::kSums:
        return world_.AllreduceEach(buffer_.data(), buffer_.size() / kNumberOfSums, kNumberOfSums);
    }
  }

  /// Fills the input with numbers that differ by rank and position.
  void Fill() {
    const std::size_t rank = world_.rank();
    const std::size_t each = buffer_.size() / world_.size();
    switch (what_.collective) {
      case Collective::kAllreduce:
      case Collective::kReduceScatter:
      case Collective::kSums:
        ForEachInPattern(buffer_, [&](float& value, std::size_t j) { value = static_cast<float>(j + rank); });
        return;
      case Collective::kBarrier:
      case Collective::kSplit:
        return;
      case Collective::kAllToAll:  // slice r is for rank r
        for (std::size_t i = 0; i < sent_.size(); ++i) {
          sent_[i] = static_cast<float>((rank * each + i % each) % kPatternLength);
        }
        return;
      case Collective::kBroadcast:  // from the last rank, which alone has the data
        root_ = world_.size() - 2;
        ForEachInPattern(buffer_, [&](float& value, std::size_t j) {
          value = static_cast<int>(rank) == world_.size() - 1 ? static_cast<float>(j) : -1.0F;
        });
        return;
      case Collective::kAllgather:
        ForEachInPattern(buffer_, [&](float& value, std::size_t j) { value = static_cast<float>(j); });
        std::fill(buffer_.begin(), buffer_.begin() + rank * each, -1.0F);
        std::fill(buffer_.begin() + (rank + 1) * each, buffer_.end(), -1.0F);
        return;
    }
  }

  /// Throws WrongResult if the buffer does not hold the result of one run after Fill; otherwise zeroes the
  /// buffer.
  void CheckAndClear() {
    const float size = static_cast<float>(world_.size());
    const bool scatters = what_.collective == Collective::kReduceScatter;
    const bool sums =
        what_.collective == Collective::kAllreduce || what_.collective == Collective::kSums || scatters;
    const float factor = sums ? size : 1;
    const float offset = sums ? size * (size - 1) / 2 : 0;
    std::size_t wrong = 0;
    const std::size_t each = buffer_.size() / world_.size();
    const std::size_t begin = scatters ? world_.rank() * each : 0;
    const std::size_t end = scatters ? begin + each : buffer_.size();
    for (std::size_t i = begin; i < end; ++i) {
      const float value = buffer_[scatters && !world_.ReduceScattersInPlace() ? i - begin : i];
      wrong += value != factor * static_cast<float>(i % kPatternLength) + offset ? 1 : 0;
    }
    if (wrong > 0)
      throw WrongResult(fmt::format("rank {}: {} of {} bytes: {} of {} elements are wrong", world_.rank(),
                                    Name(what_.collective), what_.bytes, wrong, buffer_.size()));
    std::fill(buffer_.begin(), buffer_.end(), 0.0F);
  }

 private:
  /// Writes one value in each cache line, without changing it.
  void RenewOwnSlice() {
    constexpr std::size_t kLine = 64 / sizeof(float);
    const std::size_t each = buffer_.size() / world_.size();
    volatile float* const own = buffer_.data() + each * world_.rank();
    for (std::size_t i = 0; i < each; i += kLine) own[i] = own[i];
  }

  World& world_;
  Case what_;
  std::vector<float> buffer_;
  std::vector<float> sent_;  ///< input of an all-to-all
  int root_ = -1;
};

/// Times blocks of one operation. Its results are the same on every rank, so all ranks make the same
/// decisions without further communication.
class Measurement::Stopwatch {
 public:
  explicit Stopwatch(World& world) : world_(world) {}

  /// Runs the operation `operations` times; returns the seconds that this takes on the slowest rank.
  double Block(Operation& operation, std::size_t operations) {
    world_.Barrier();
    const auto start = Clock::now();
    for (std::size_t i = 0; i < operations; ++i) operation.Run();
    return Share(SecondsSince(start));
  }

  /// Seconds from the construction of this object to the end of the last block, on the slowest rank.
  double elapsed() const { return elapsed_s_; }

 private:
  double Share(double mine) {
    std::vector<float> all(2 * world_.size(), 0.0F);
    all[2 * world_.rank()] = static_cast<float>(mine);
    all[2 * world_.rank() + 1] = static_cast<float>(SecondsSince(start_));
    world_.Allreduce(all.data(), all.size());
    float slowest = 0;
    for (std::size_t i = 0; i < all.size(); i += 2) {
      slowest = std::max(slowest, all[i]);
      elapsed_s_ = std::max(elapsed_s_, static_cast<double>(all[i + 1]));
    }
    return slowest;
  }

  World& world_;
  Clock::time_point start_ = Clock::now();
  double elapsed_s_ = 0;
};

Measurement::Measurement(World& world, const Case& what, double block_s)
    : watch_(std::make_unique<Stopwatch>(world)), operation_(std::make_unique<Operation>(world, what)) {
  operation_->Fill();
  const double first_s = watch_->Block(*operation_, 1);
  operation_->CheckAndClear();
  if (first_s > kSlowBlocks * block_s) return;  // far too slow for a cold start to matter
  for (;;) {                                    // this also warms up
    const double seconds = watch_->Block(*operation_, operations_);
    if (seconds >= block_s || operations_ == kMostOperations) return;
    const double factor = std::clamp(1.2 * block_s / std::max(seconds, 1e-9), 1.2, 100.0);
    operations_ = std::min(kMostOperations, static_cast<std::size_t>(std::ceil(operations_ * factor)));
  }
}

Measurement::~Measurement() = default;

double Measurement::Sample() {
  return watch_->Block(*operation_, operations_) / static_cast<double>(operations_);
}

double Measurement::elapsed() const {
  return watch_->elapsed();
}

std::vector<double> Measure(World& world, const Case& what, const Effort& effort) {
  Measurement measurement(world, what, effort.block_s);
  std::vector<double> seconds;
  do {
    seconds.push_back(measurement.Sample());
    if (measurement.elapsed() > 10 * effort.limit_s) break;
    if (measurement.elapsed() > effort.limit_s && std::ssize(seconds) >= effort.least_samples) break;
  } while (std::ssize(seconds) < effort.samples);
  return seconds;
}

}  // namespace warren::bench
