// allreduce-handles: a Warren rank that starts all sums and then waits for all of them. BENCH_WAY is one of:
//   handles      by handles, in the same order on all ranks
//   named        by names, each reduced separately
//   packed       by names, fused up to 2 MiB
//   new-names    packed, with names that are new to every rank, so that rank 0 must count each of them
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/allreduce/world.h"
#include "warren/collectives.h"

namespace {

class HandlesWorld : public warren::bench::World {
 public:
  explicit HandlesWorld(const std::string& way) : renames_(way == "new-names") {
    warren::CoordinatorOptions options;
    if (way == "named") options.fusion_bytes = 0;
    if (way == "named" || way == "packed" || renames_) {
      coordinator_ = std::make_unique<warren::Coordinator>(world_, options);
    } else if (way != "handles") {
      throw std::invalid_argument("BENCH_WAY: expected handles, named, packed or new-names, not " + way);
    }
  }

  int rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }
  void Allreduce(float* data, std::size_t count) override { AllreduceEach(data, count, 1); }
  void AllreduceEach(float* data, std::size_t count_each, std::size_t number) override {
    handles_.clear();
    ++times_;
    for (std::size_t i = 0; i < number; ++i, data += count_each) {
      handles_.push_back(coordinator_ ? coordinator_->EnqueueAllreduce(Name(count_each, i), data, data,
                                                                       count_each, warren::Op::kSum)
                                      : world_.AsyncAllreduce(data, data, count_each, warren::Op::kSum));
    }
    warren::WaitAll(handles_);
  }
  void Barrier() override { world_.Barrier(); }

 private:
  /// Sums of different sizes have different names, since a name whose size changes is negotiated again.
  std::string Name(std::size_t count, std::size_t index) const {
    std::string name = std::to_string(count).append("/").append(std::to_string(index));
    return renames_ ? name.append("/").append(std::to_string(times_)) : name;
  }

  const warren::Communicator world_ = warren::World();
  const bool renames_;
  std::size_t times_ = 0;
  std::vector<warren::Handle> handles_;
  std::unique_ptr<warren::Coordinator> coordinator_;
};

}  // namespace

int main(int argc, char** argv) {
  const char* way = std::getenv("BENCH_WAY");
  warren::Init();
  const int code = warren::bench::RunWorker(
      argc, argv, [&] { return std::make_unique<HandlesWorld>(way != nullptr ? way : "handles"); });
  warren::Finalize();
  return code;
}
