// Ranks that submit named operations and communicate about them; one rank dies at a given point.
//
//   named_loss_worker ACTION POINT before|after VICTIM
//
// Each rank prints "rank N" once set up. VICTIM is killed when its named operations reach POINT: with
// "before", after the other ranks have waited for its part for a while; with "after", right after its part.
// It prints "dies at <seconds>" on stderr first. The others print "told at <seconds>" and the error; exit
// code 2.
//
// ACTION                               POINT, a call on the communicator of the named operations
//   new     submits new names            words          the allreduce at the beginning of each cycle
//   packed  submits many known names     lengths        \.
//   join    all ranks but VICTIM join    names           | the reports to rank 0, and
//   joined  one sums, others join        answer-length   | its answer
//   close   all but VICTIM close         answer         /
//   leave   the same, with an            one            an allreduce of one name
//           operation under way          packed         an allreduce of several names
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rabit_engine/api/collectives_face.h"
#include "rabit_engine/api/session.h"
#include "rabit_engine/base/settings.h"
#include "rabit_engine/call/communicator.h"
#include "rabit_engine/engine/join.h"
#include "rabit_engine/recovery/recoverable_communicator.h"
#include "rabit_engine/reduce/reduction.h"
#include "tests/rabit_engine/matrix/require.h"
#include "warren/c_api.h"

namespace {

using warren::Collective;
using warren::Communicator;
using warren::DataType;
using warren::Operation;
using warren::ReduceOp;
using warren::Reduction;

constexpr std::size_t kCount = 2'000;  // elements per operation
constexpr int kNumNames = 20;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The point at which this rank dies, if it is VICTIM.
struct Plan {
  std::string point;
  bool before = false;
  std::atomic<bool> is_set{false};
  std::atomic<bool> is_reached{false};
  std::atomic<bool> others_go_on{false};
};
Plan plan;

void Die() {
  std::fprintf(stderr, "dies at %.6f\n", Now());
  std::raise(SIGKILL);
}

template <typename Call>
void Pass(const std::string& point, Call&& call) {
  const bool dies = plan.is_set && plan.point == point;
  if (dies && plan.before) {
    plan.is_reached = true;
    while (!plan.others_go_on) usleep(100);
    usleep(300'000);  // until the other ranks are asleep
    Die();
  }
  call();
  if (dies) Die();
}

/// Wraps another communicator and lets this rank die at the planned point.
class Mortal final : public Communicator {
 public:
  explicit Mortal(std::unique_ptr<Communicator> inner) : inner_(std::move(inner)) {}

  int rank() const override { return inner_->rank(); }
  int world_size() const override { return inner_->world_size(); }
  bool is_distributed() const override { return inner_->is_distributed(); }
  std::string host() const override { return inner_->host(); }
  int local_rank() const override { return inner_->local_rank(); }
  int host_of(int rank) const override { return inner_->host_of(rank); }
  std::string name() const override { return inner_->name(); }
  int rank_in_job(int rank) const override { return inner_->rank_in_job(rank); }

  void Run(const Operation& operation) override {
    Pass(PointOf(operation), [&] { inner_->Run(operation); });
  }
  std::unique_ptr<Communicator> Split(int color, int key) override {
    return std::make_unique<Mortal>(inner_->Split(color, key));
  }
  void LookForLosses() override { inner_->LookForLosses(); }
  void GiveUp() noexcept override { inner_->GiveUp(); }
  void TrackerPrint(const std::string& text) override { inner_->TrackerPrint(text); }
  void Finalize() override { inner_->Finalize(); }

 private:
  /// The point of a cycle of named operations at which `operation` is called.
  std::string PointOf(const Operation& operation) {
    switch (operation.kind) {
      case Collective::kAllreduce: {
        const Reduction& reduction = *operation.reduction;
        const bool are_words =
            reduction.type() == DataType::kULong && reduction.operation() == ReduceOp::kBitAnd;
        return are_words ? "words" : operation.count > kCount ? "packed" : "one";
      }
      case Collective::kBroadcast:
        is_answer_ = !is_answer_;
        return is_answer_ ? "answer-length" : "answer";
      case Collective::kAllgather:
        return "lengths";
      case Collective::kGather:
        return "names";
      default:
        return "another call";
    }
  }

  std::unique_ptr<Communicator> inner_;
  bool is_answer_ = false;
};

/// Exits with code 2 if a call failed, which means that this rank was told of the loss.
void Check(int result) {
  if (result == 0) return;
  std::fprintf(stderr, "told at %.6f\n%s\n", Now(), WarrenGetLastError());
  std::_Exit(2);
}

class Names {
 public:
  explicit Names(WarrenCoordinator named) : named_(named), values_(kNumNames, std::vector<float>(kCount)) {}

  void Sum(const std::string& prefix, int num_names) {
    std::vector<WarrenHandle> handles;
    for (int i = 0; i < num_names; ++i) handles.push_back(Give(prefix + std::to_string(i), i));
    Check(WarrenWaitAll(handles.data(), handles.size()));
  }
  WarrenHandle Give(const std::string& name, int place) {
    std::vector<float>& values = values_[place];
    WarrenHandle handle = nullptr;
    Check(WarrenEnqueueAllreduce(named_, name.c_str(), values.data(), values.data(), kCount, WARREN_FLOAT32,
                                 WARREN_SUM, nullptr, &handle));
    return handle;
  }

 private:
  WarrenCoordinator named_;
  std::vector<std::vector<float>> values_;
};

void Act(const std::string& action, WarrenCoordinator named, Names& names, int rank, int size, int victim) {
  const bool dies = rank == victim;
  if (action == "new") {
    for (int round = 0;; ++round) names.Sum("new" + std::to_string(round) + "-", 3);
  } else if (action == "packed") {
    for (;;) names.Sum("known", kNumNames);
  } else if (action == "join") {
    if (dies) pause();
    Check(WarrenCoordinatorJoin(named, nullptr));
  } else if (action == "joined") {
    if (rank == (victim + 1) % size) names.Sum("x", 1);
    Check(WarrenCoordinatorJoin(named, nullptr));
  } else if (action == "close") {
    if (dies) pause();
    Check(WarrenCoordinatorClose(named));
  } else if (action == "leave") {
    if (dies) pause();
    const WarrenHandle handle = names.Give("x", 0);
    REQUIRE(WarrenCoordinatorClose(named) != 0);
    REQUIRE(WarrenCoordinatorClose(named) == 0);  // it has ended already
    Check(WarrenWait(handle));
  } else {
    REQUIRE(!"an action");
  }
  REQUIRE(!"told");
}

}  // namespace

int main(int argc, char** argv) {
  REQUIRE(argc == 5);
  plan.point = argv[2];
  plan.before = std::string(argv[3]) == "before";
  const int victim = std::atoi(argv[4]);
  auto joined = warren::Join(warren::ReadSettings({}));
  const int rank = joined->rank();
  const int size = joined->world_size();
  WarrenComm_ comm{
      std::make_shared<warren::api::Session>(std::make_unique<warren::recovery::RecoverableCommunicator>(
          std::make_unique<Mortal>(std::move(joined))))};
  WarrenCoordinator named = nullptr;
  Check(WarrenCoordinatorCreate(&comm, nullptr, &named));
  Names names(named);
  names.Sum("known", kNumNames);
  std::printf("rank %d\n", rank);
  std::fflush(stdout);
  plan.is_set = rank == victim;
  while (plan.is_set && plan.point == "words" && !plan.is_reached)
    usleep(100);  // this point is reached without an action
  Check(WarrenBarrier(&comm));
  plan.others_go_on = true;
  Act(argv[1], named, names, rank, size, victim);
}
