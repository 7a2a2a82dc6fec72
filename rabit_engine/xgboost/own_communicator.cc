#include "rabit_engine/xgboost/own_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

#include "rabit_engine/base/error.h"
#include "rabit_engine/xgboost/codes.h"

namespace warren::xgboost {
namespace {

/// In a round, numbers above this one are objections. The objection of a lower rank is a greater number, so
/// the maximum identifies the lowest rank that objects.
constexpr std::uint64_t kObjections = std::uint64_t{1} << 63;

template <typename Function>
void FindIn(const LoadedLibrary& library, const char* symbol, Function& function) {
  void* const address = library.Find(symbol);
  if (address == nullptr) throw Refusal(fmt::format("it has no {}", symbol));
  function = reinterpret_cast<Function>(address);
}

class BootstrapOverXgboost final : public Bootstrap {
 public:
  explicit BootstrapOverXgboost(std::shared_ptr<Rounds> rounds)
      : rounds_(std::move(rounds)), rank_(rounds_->own().rank()), world_size_(rounds_->own().world_size()) {}

  int rank() const override { return rank_; }
  int world_size() const override { return world_size_; }

  std::vector<std::string> Allgather(const std::string& record) override {
    const std::uint64_t longest = rounds_->Greatest(record.size());
    // Each share holds the length of the record, then the record.
    const std::size_t share = sizeof(std::uint64_t) + longest;
    std::string all(share * world_size_, '\0');
    const std::uint64_t length = record.size();
    std::memcpy(all.data() + share * rank_, &length, sizeof(length));
    std::memcpy(all.data() + share * rank_ + sizeof(length), record.data(), record.size());
    rounds_->own().Allgather(all.data(), all.size());
    std::vector<std::string> records;
    records.reserve(world_size_);
    for (int rank = 0; rank < world_size_; ++rank) {
      std::uint64_t bytes = 0;
      std::memcpy(&bytes, all.data() + share * rank, sizeof(bytes));
      records.push_back(all.substr(share * rank + sizeof(bytes), std::min(bytes, longest)));
    }
    return records;
  }
  void Print(const std::string& text) override { rounds_->own().Print(text); }
  void Shutdown() override {}  // XGBoost's finalize notifies the tracker

 private:
  std::shared_ptr<Rounds> rounds_;
  int rank_;
  int world_size_;
};

}  // namespace

OwnCommunicator::OwnCommunicator(const LoadedLibrary& library) {
  FindIn(library, "XGCommunicatorGetRank", rank_);
  FindIn(library, "XGCommunicatorGetWorldSize", world_size_);
  FindIn(library, "XGCommunicatorAllreduce", allreduce_);
  FindIn(library, "XGCommunicatorBroadcast", broadcast_);
  FindIn(library, "XGCommunicatorAllgather", allgather_);
  FindIn(library, "XGCommunicatorPrint", print_);
  FindIn(library, "XGBGetLastError", last_error_);
}

void OwnCommunicator::Check(int code, const char* what) const {
  if (code != 0) throw EngineError(fmt::format("XGBoost's own {} failed: {}", what, last_error_()));
}

void OwnCommunicator::Allreduce(void* buffer, std::size_t count, int type, int operation) const {
  Check(allreduce_(buffer, count, type, operation), "allreduce");
}

void OwnCommunicator::Broadcast(void* buffer, std::size_t bytes, int root) const {
  Check(broadcast_(buffer, bytes, root), "broadcast");
}

void OwnCommunicator::Allgather(void* buffer, std::size_t bytes) const {
  Check(allgather_(buffer, bytes), "allgather");
}

void OwnCommunicator::Print(const std::string& text) const {
  Check(print_(text.c_str()), "print");
}

std::uint64_t Rounds::Round(std::uint64_t number, const std::string& objection) {
  const auto world_size = static_cast<std::uint64_t>(own_.world_size());
  const auto rank = static_cast<std::uint64_t>(own_.rank());
  if (!objection.empty()) number = kObjections + world_size - rank;
  std::uint64_t greatest = number;
  own_.Allreduce(&greatest, 1, kU8, kMax);
  if (greatest < kObjections) return greatest;
  const std::uint64_t first = world_size - (greatest - kObjections);
  std::string text = first == rank ? fmt::format("rank {}: {}", rank, objection) : std::string();
  std::uint64_t length = text.size();
  own_.Broadcast(&length, sizeof(length), static_cast<int>(first));
  text.resize(length);
  own_.Broadcast(text.data(), text.size(), static_cast<int>(first));
  refusal_ = text;
  throw Refusal(text);
}

void Rounds::Meet() const {
  // XGBoost's links do not compare calls: a rank in another call receives the beginning of these numbers as
  // its result, so they are chosen to make no sense there. Besides, another call is unlikely to have the same
  // number of bytes. (_xgboost/engine.py begins its agreement with another array of the same length.)
  const std::array<std::int32_t, 13> all{-1, -1, 0x57415252, 0x454e2121, 3, 1, 4, 1, 5, 9, 2, 6, 5};
  std::array<std::int32_t, 13> found = all;
  own_.Allreduce(found.data(), found.size(), kI4, kMax);
  if (found != all) {
    throw EngineError(
        "another rank was in another call: ask for Warren's engine on all ranks of a communicator, or on none");
  }
}

std::uint64_t Rounds::Greatest(std::uint64_t number) {
  return Round(number, {});
}

void Rounds::Do(const std::function<void()>& something) {
  std::string objection;
  try {
    something();
  } catch (const std::exception& error) {
    if (!refusal_.empty()) throw Refusal(refusal_);
    objection = error.what();
    if (objection.empty()) objection = "an error without a message";
  }
  Round(0, objection);
}

std::unique_ptr<Bootstrap> MakeBootstrapOver(std::shared_ptr<Rounds> rounds) {
  return std::make_unique<BootstrapOverXgboost>(std::move(rounds));
}

}  // namespace warren::xgboost
