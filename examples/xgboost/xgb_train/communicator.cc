// Communicator over XGBoost's collective C API.
#include "examples/xgboost/xgb_train/communicator.h"

#include <fmt/format.h>
#include <xgboost/c_api.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "examples/xgboost/xgb_train/xgboost_api.h"

namespace warren::xgb_train {
namespace {

// Codes of rabit's types and operations, as expected by XGCommunicatorAllreduce.
constexpr int kUint64 = 5;
constexpr int kMax = 0;
constexpr int kSum = 2;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// The number of processes that a launcher has started, and the environment variable that contains it.
struct Launch {
  std::string variable;
  int processes = 1;
};

/// Determines how mpirun, srun or torchrun started this process, by the main rules of BootstrapOfLauncher
/// (rabit_engine/engine/join.cc), which is not available if XGBoost communicates by itself. With
/// WARREN_BOOTSTRAP=none, the processes do not form a job.
Launch LaunchOfThisProcess() {
  if (Variable("WARREN_BOOTSTRAP") == "none" || Variable("RABIT_BOOTSTRAP") == "none") return {};
  std::vector<std::string> names{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
  if (!Variable("SLURM_STEP_ID").empty()) names.emplace_back("SLURM_STEP_NUM_TASKS");
  // Other programs also set WORLD_SIZE, so torchrun's other variables must be set, too. dmlc-submit without a
  // tracker sets all of them for PyTorch, but also DMLC_JOB_CLUSTER.
  if (!Variable("RANK").empty() && !Variable("MASTER_ADDR").empty() && !Variable("MASTER_PORT").empty() &&
      Variable("DMLC_JOB_CLUSTER").empty())
    names.emplace_back("WORLD_SIZE");
  for (const std::string& name : names) {
    const int processes = std::atoi(Variable(name.c_str()).c_str());
    if (processes > 1) return {name, processes};
  }
  return {};
}

}  // namespace

Communicator Communicator::Join() {
  Communicator self;
  std::string tracker = Variable("DMLC_TRACKER_URI");
  if (tracker == "NULL") tracker.clear();  // rabit's word for no tracker
  const Launch launch = tracker.empty() ? LaunchOfThisProcess() : Launch();
  const auto asked = [](const char* name, const char* former) {
    return Variable(name).empty() ? Variable(former) : Variable(name);
  };
  const std::string bootstrap = asked("WARREN_BOOTSTRAP", "RABIT_BOOTSTRAP");
  // XGBoost's own communication knows none of these variables.
  const bool demands_a_job = Variable("WARREN_XGBOOST_ENGINE") != "own" &&
                             ((!bootstrap.empty() && bootstrap != "auto" && bootstrap != "none") ||
                              asked("WARREN_ENGINE", "RABIT_ENGINE") == "mpi");
  if (tracker.empty() && launch.processes == 1 && !demands_a_job) return self;
  // An empty configuration: rabit (XGBoost up to 2.0) reads the DMLC_* variables itself, and Warren's engine
  // also reads the launcher's.
  CheckXgboost(XGCommunicatorInit("{}"),
               !tracker.empty()       ? fmt::format("joining the job of the tracker at {}", tracker)
               : launch.processes > 1 ? fmt::format("joining the job of {} processes", launch.processes)
                                      : "joining the job that the environment asks for");
  self.joined_ = true;
  self.rank_ = XGCommunicatorGetRank();
  self.size_ = XGCommunicatorGetWorldSize();
  if (!tracker.empty() && XGCommunicatorIsDistributed() == 0) {
    throw std::runtime_error(fmt::format(
        "the tracker at {} is named, but XGBoost {} has not joined its job: since 2.1, it does not read DMLC_TRACKER_URI; use XGBoost 1.7 or 2.0, or train from Python (warren.xgboost)",
        tracker, XgboostVersion()));
  }
  if (tracker.empty() && launch.processes > 1 && self.size_ != launch.processes) {
    throw std::runtime_error(fmt::format(
        "{}={}, so this is one of {} processes of a launcher, but XGBoost's own communication needs a tracker: "
        "start them with dmlc-submit --num-workers {}, or set WARREN_BOOTSTRAP=none if they are separate programs",
        launch.variable, launch.processes, launch.processes, launch.processes));
  }
  return self;
}

void Communicator::Leave() {
  if (std::exchange(joined_, false)) CheckXgboost(XGCommunicatorFinalize(), "leaving the job");
}

void Communicator::Print(const std::string& line) {
  if (joined_) {
    CheckXgboost(XGCommunicatorPrint((line + "\n").c_str()), "printing through the tracker");
  } else {
    fmt::print("{}\n", line);
    std::fflush(stdout);
  }
}

void Communicator::Broadcast(std::string& bytes, int root) {
  if (size_ == 1) return;
  uint64_t size = bytes.size();
  CheckXgboost(XGCommunicatorBroadcast(&size, sizeof(size), root), "a broadcast");
  bytes.resize(size);
  if (size > 0) CheckXgboost(XGCommunicatorBroadcast(bytes.data(), bytes.size(), root), "a broadcast");
}

uint64_t Communicator::Sum(uint64_t value) {
  if (size_ > 1) CheckXgboost(XGCommunicatorAllreduce(&value, 1, kUint64, kSum), "an allreduce");
  return value;
}

uint64_t Communicator::Max(uint64_t value) {
  if (size_ > 1) CheckXgboost(XGCommunicatorAllreduce(&value, 1, kUint64, kMax), "an allreduce");
  return value;
}

std::string Communicator::GatherToRoot(const std::string& bytes) {
  std::string all;
  for (int root = 0; root < size_; ++root) {
    std::string part = rank_ == root ? bytes : std::string();
    Broadcast(part, root);
    if (IsRoot()) all += part;
  }
  return all;
}

}  // namespace warren::xgb_train
