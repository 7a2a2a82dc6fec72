// The ways to wait for many small sums, in turn: each line "way seconds" is one round of one way, from rank
// 0.
//   handles_worker TENSORS BYTES ROUNDS [WAY]
// Ways: "plain", one after the other; "handles", all begun, then waited for; "named", by name, not packed;
// "packed", by name and packed; "new names", packed, with names that no rank has heard of (all of them go to
// rank 0, which counts who has them).
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

}  // namespace

int main(int argc, char** argv) {
  warren::Init(argc, argv);
  {
    Measurement measurement(std::strtoul(argv[1], nullptr, 10),
                            std::strtoul(argv[2], nullptr, 10) / sizeof(float), std::atoi(argv[4]),
                            argc > 5 ? argv[5] : "");
    for (int round = 0; round < std::atoi(argv[3]); ++round) measurement.Run(round);
  }
  warren::Finalize();
  return 0;
}
