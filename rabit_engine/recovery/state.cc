#include "rabit_engine/recovery/state.h"

#include <utility>

namespace warren::recovery {

const std::string& Models::Global() {
  if (serialize) global = std::exchange(serialize, nullptr)();
  return *global;
}

ModelsReport Models::Report(bool is_wanted) {
  ModelsReport report;
  report.has_global = has_global();
  if (is_wanted && report.has_global && !is_gone) report.global_bytes = Global().size();
  for (const auto& [rank, bytes] : locals)
    report.locals.push_back({static_cast<std::uint64_t>(rank), bytes.size()});
  return report;
}

RecoveryState::RecoveryState(int rank, int world_size, const Replicas& replicas, bool keeps_before)
    : keeps_before_(keeps_before),
      before_(rank, world_size, replicas.results),
      calls_(rank, world_size, replicas.results) {}

void RecoveryState::BeginEnding(Models next) {
  // The program may now change the model of a lazy checkpoint, which can therefore no longer be serialized.
  if (std::exchange(models_.serialize, nullptr)) models_.is_gone = true;
  ending_ = true;
  next_ = std::move(next);
}

void RecoveryState::End() {
  models_ = std::exchange(next_, {});
  ending_ = false;
  ++version_;
  calls_.Clear(stock_);
}

Report RecoveryState::MakeReport(bool with_global) {
  Report report;
  report.fresh = fresh_;
  if (fresh_) return report;
  report.loaded = loaded_;
  report.before = before_.Report();
  report.version = version_;
  report.calls = calls_.Report();
  report.ending = ending_;
  report.models = models_.Report(with_global);
  report.next = next_.Report(with_global);
  return report;
}

void RecoveryState::Follow(const Plan& plan) {
  if (fresh_) {
    // This discards data from an earlier, aborted meeting, which may belong to an older version.
    models_ = {};
    before_.Clear(stock_);
    calls_.Clear(stock_);
    version_ = plan.version;
  } else if (version_ < plan.version) {
    End();
  }
}

std::span<const std::byte> RecoveryState::Part(const Transfer& transfer) {
  switch (transfer.what) {
    case What::kGlobalModel:
      return std::as_bytes(std::span(models_.Global()));
    case What::kLocalModel:
      return std::as_bytes(std::span(models_.locals.at(static_cast<int>(transfer.number))));
    case What::kResultBefore:
    case What::kResult:
      break;
  }
  const CallLog& log = transfer.what == What::kResult ? calls_ : before_;
  const Buffer& result = *log.Find(transfer.number);
  return {result.data(), result.size()};
}

void RecoveryState::Take(const Transfer& transfer, Buffer bytes) {
  const auto text = [&] { return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()); };
  switch (transfer.what) {
    case What::kGlobalModel:
      models_.global = text();
      return;
    case What::kLocalModel:
      models_.locals[static_cast<int>(transfer.number)] = text();
      return;
    case What::kResultBefore:
      return before_.Insert(transfer.number, std::move(bytes));
    case What::kResult:
      return calls_.Insert(transfer.number, std::move(bytes));
  }
}

}  // namespace warren::recovery
