// The ways to wait for many small sums, in turn: each line "way: seconds" is one round of one way, from rank
// 0, by the number of times that it was done in the round.
//   handles-worker TENSORS BYTES ROUNDS TIMES [WAY]
// Ways: "plain", one after the other; "handles", all begun, then waited for; "named", by name, not packed;
// "packed", by name and packed; "new names", packed, with names that no rank has heard of (all of them go to
// rank 0, which counts who has them).
//   handles-worker overlap BYTES ROUNDS
// "reduce", "compute" and "both": a sum alone, as much computation alone, and the sum by a handle meanwhile.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "warren/collectives.h"

namespace {

using Clock = std::chrono::steady_clock;
using warren::Communicator;
using warren::Coordinator;
using warren::Handle;
using warren::Op;

std::string NameOf(const char* kind, int round, std::size_t tensor) {
  std::string name(kind);
  if (round >= 0) name.append(std::to_string(round)).append("/");
  return name.append(std::to_string(tensor));
}

class Measurement {
 public:
  Measurement(std::size_t tensors, std::size_t count, int times, std::string only)
      : times_(times),
        only_(std::move(only)),
        tensors_(tensors, std::vector<float>(count, 1.0F)),
        handles_(tensors) {
    warren::CoordinatorOptions unpacked;
    unpacked.fusion_bytes = 0;
    named_ = std::make_unique<Coordinator>(world_, unpacked);
    packed_ = std::make_unique<Coordinator>(world_);
  }

  void Run(int round) {
    Time("plain", [&](int) {
      for (auto& tensor : tensors_) world_.Allreduce(tensor.data(), tensor.size(), Op::kMax);
    });
    Time("handles", [&](int) {
      for (std::size_t i = 0; i < tensors_.size(); ++i) {
        handles_[i] =
            world_.AsyncAllreduce(tensors_[i].data(), tensors_[i].data(), tensors_[i].size(), Op::kMax);
      }
      warren::WaitAll(handles_);
    });
    Time("named", [&](int) { Enqueue(*named_, "", -1); });
    Time("packed", [&](int) { Enqueue(*packed_, "", -1); });
    Time("new names", [&](int time) { Enqueue(*packed_, "new", round * times_ + time); });
  }

 private:
  void Enqueue(const Coordinator& coordinator, const char* kind, int round) {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      handles_[i] = coordinator.EnqueueAllreduce(NameOf(kind, round, i), tensors_[i].data(),
                                                 tensors_[i].data(), tensors_[i].size(), Op::kMax);
    }
    warren::WaitAll(handles_);
  }

  template <typename Function>
  void Time(const char* way, Function&& function) {
    if (!only_.empty() && only_ != way) return;
    world_.Barrier();
    const Clock::time_point begin = Clock::now();
    for (int time = 0; time < times_; ++time) function(time);
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count() / times_;
    if (world_.rank() == 0) std::printf("%s: %.9f\n", way, seconds);
  }

  const Communicator world_ = warren::World();
  const int times_;
  const std::string only_;
  std::vector<std::vector<float>> tensors_;
  std::vector<Handle> handles_;
  std::unique_ptr<Coordinator> named_;
  std::unique_ptr<Coordinator> packed_;
};

/// Something that takes about so long and needs no memory.
class Computation {
 public:
  explicit Computation(double seconds) {
    const Clock::time_point begin = Clock::now();
    Run(kTrial);
    const double trial = std::chrono::duration<double>(Clock::now() - begin).count();
    steps_ = static_cast<long>(static_cast<double>(kTrial) * seconds / trial);
  }
  void Run() { Run(steps_); }

 private:
  static constexpr long kTrial = 2'000'000;
  void Run(long steps) {
    for (long i = 0; i < steps; ++i) state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    asm volatile("" : "+r"(state_));
  }
  unsigned long state_ = 1;  // NOLINT(google-runtime-int)
  long steps_ = 0;
};

void MeasureOverlap(std::size_t count, int rounds) {
  const Communicator world = warren::World();
  std::vector<float> vector(count, 1.0F);
  const auto time = [&](const char* what, auto&& function) {
    world.Barrier();
    const Clock::time_point begin = Clock::now();
    function();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (world.rank() == 0 && *what != '\0') std::printf("%s: %.9f\n", what, seconds);
    return seconds;
  };
  const auto reduce = [&] { world.Allreduce(vector.data(), vector.size(), Op::kMax); };
  double seconds = 1;
  for (int i = 0; i < 5; ++i) seconds = std::min(seconds, time("", reduce));
  world.Allreduce(&seconds, 1, Op::kMax);
  Computation computation(seconds);
  for (int round = 0; round < rounds; ++round) {
    time("reduce", reduce);
    time("compute", [&] { computation.Run(); });
    time("both", [&] {
      Handle handle = world.AsyncAllreduce(vector.data(), vector.data(), vector.size(), Op::kMax);
      computation.Run();
      handle.Wait();
    });
  }
}

}  // namespace

int main(int argc, char** argv) {
  warren::Init(argc, argv);
  if (std::string(argv[1]) == "overlap") {
    MeasureOverlap(std::strtoul(argv[2], nullptr, 10) / sizeof(float), std::atoi(argv[3]));
  } else {
    Measurement measurement(std::strtoul(argv[1], nullptr, 10),
                            std::strtoul(argv[2], nullptr, 10) / sizeof(float), std::atoi(argv[4]),
                            argc > 5 ? argv[5] : "");
    for (int round = 0; round < std::atoi(argv[3]); ++round) measurement.Run(round);
  }
  warren::Finalize();
  return 0;
}
