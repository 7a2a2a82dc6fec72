#include "rabit_engine/recovery/call_log.h"

#include <utility>

namespace warren::recovery {

void CallLog::Append(Buffer result, Meets meets, BufferStock& stock) {
  const std::uint64_t call = completed_;
  Insert(call, std::move(result));
  ++completed_;
  if (meets == Meets::kNobody) return;
  for (; first_unsure_ < call; ++first_unsure_) {
    std::optional<Buffer>& settled = results_[first_unsure_];
    if (!settled || KeepsResult(rank_, world_size_, first_unsure_, replicas_)) continue;
    stock.Return(std::move(*settled));
    settled.reset();
  }
}

void CallLog::Insert(std::uint64_t call, Buffer result) {
  if (results_.size() <= call) results_.resize(call + 1);
  results_[call] = std::move(result);
}

const Buffer* CallLog::Find(std::uint64_t call) const {
  return call < results_.size() && results_[call] ? &*results_[call] : nullptr;
}

CallsReport CallLog::Report() const {
  CallsReport report;
  report.completed = completed_;
  for (std::uint64_t call = 0; call < results_.size(); ++call) {
    if (results_[call]) report.results.push_back({call, results_[call]->size()});
  }
  return report;
}

void CallLog::Clear(BufferStock& stock) {
  for (std::optional<Buffer>& result : results_) {
    if (result) stock.Return(std::move(*result));
  }
  results_.clear();
  completed_ = 0;
  first_unsure_ = 0;
}

}  // namespace warren::recovery
