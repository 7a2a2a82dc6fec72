// Communicator over XGBoost's collective C API.
#include "examples/xgboost/xgb_train/communicator.h"

#include <fmt/format.h>
#include <xgboost/c_api.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "examples/xgboost/xgb_train/xgboost_api.h"

namespace warren::xgb_train {
namespace {

// Numbers of rabit's types and operations, as XGCommunicatorAllreduce takes them.
constexpr int kUint64 = 5;
constexpr int kMax = 0;
constexpr int kSum = 2;

}  // namespace

Communicator Communicator::Join() {
  Communicator self;
  const char* tracker = std::getenv("DMLC_TRACKER_URI");
  if (tracker == nullptr || *tracker == '\0') return self;
  // An empty configuration: rabit (XGBoost up to 2.0) reads the DMLC_* variables itself.
  CheckXgboost(XGCommunicatorInit("{}"), fmt::format("joining the job of the tracker at {}", tracker));
  self.joined_ = true;
  self.rank_ = XGCommunicatorGetRank();
  self.size_ = XGCommunicatorGetWorldSize();
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
