#include "rabit_engine/recovery/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>

#include "rabit_engine/base/told_number.h"

namespace warren::recovery {
namespace {

// --- reports as bytes: 64-bit words in native order ---

class WordWriter {
 public:
  void Word(std::uint64_t word) { bytes_.append(reinterpret_cast<const char*>(&word), sizeof word); }
  void List(const std::vector<Kept>& list) {
    Word(list.size());
    for (const Kept& kept : list) {
      Word(kept.number);
      Word(kept.bytes);
    }
  }
  void Calls(const CallsReport& calls) {
    Word(calls.completed);
    List(calls.results);
  }
  void Models(const ModelsReport& models) {
    Word(models.has_global ? 1 : 0);
    Word(models.global_bytes.has_value() ? 1 : 0);
    Word(models.global_bytes.value_or(0));
    List(models.locals);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class WordReader {
 public:
  explicit WordReader(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t Word() {
    std::uint64_t word = 0;
    if (bytes_.size() < sizeof word) Refuse();
    std::memcpy(&word, bytes_.data(), sizeof word);
    bytes_.remove_prefix(sizeof word);
    return word;
  }
  bool Flag() {
    const std::uint64_t word = Word();
    if (word > 1) Refuse();
    return word == 1;
  }
  int Count() {
    const std::uint64_t word = Word();
    if (word > INT32_MAX) Refuse();
    return static_cast<int>(word);
  }
  std::vector<Kept> List() {
    const std::uint64_t count = Word();
    if (count > bytes_.size() / sizeof(Kept)) Refuse();
    std::vector<Kept> list(count);
    for (Kept& kept : list) {
      kept.number = Word();
      kept.bytes = Word();
    }
    if (std::ranges::adjacent_find(list, std::ranges::greater_equal(), &Kept::number) != list.end()) Refuse();
    return list;
  }
  CallsReport Calls() {
    CallsReport calls;
    calls.completed = Word();
    calls.results = List();
    return calls;
  }
  ModelsReport Models() {
    ModelsReport models;
    models.has_global = Flag();
    const bool can_give = Flag();
    const std::uint64_t bytes = Word();
    if (can_give) models.global_bytes = bytes;
    models.locals = List();
    return models;
  }
  void End() const {
    if (!bytes_.empty()) Refuse();
  }

 private:
  [[noreturn]] static void Refuse() { ThrowOtherVersion("report"); }

  std::string_view bytes_;
};

const Kept* Find(const std::vector<Kept>& list, std::uint64_t number) {
  const auto found = std::ranges::lower_bound(list, number, {}, &Kept::number);
  return found != list.end() && found->number == number ? &*found : nullptr;
}

// --- the plan ---

/// The state of a rank in the plan's version. A rank that was still ending the previous version counts as
/// having ended it.
struct Place {
  bool fresh = true;
  const CallsReport* before = nullptr;
  const ModelsReport* models = nullptr;
  const CallsReport* calls = nullptr;
};

const CallsReport kNoCalls;
const ModelsReport kNoModels;

class Planner {
 public:
  Planner(std::span<const Report> reports, const Replicas& replicas)
      : reports_(reports), replicas_(replicas), size_(static_cast<int>(reports.size())) {}

  Plan Make() {
    for (const Report& report : reports_) {
      if (report.fresh) continue;
      plan_.loaded |= report.loaded;
      plan_.version = std::max(plan_.version, report.version);
    }
    if (AllAreEnding()) ++plan_.version;
    for (int rank = 0; rank < size_; ++rank) places_.push_back(PlaceOf(rank));
    for (const Place& place : places_) {
      plan_.calls_before = std::max(plan_.calls_before, place.before->completed);
      plan_.calls = std::max(plan_.calls, place.calls->completed);
    }
    SendGlobalModel();
    SendLocalModels();
    SendResults(What::kResultBefore, &Place::before, plan_.calls_before);
    SendResults(What::kResult, &Place::calls, plan_.calls);
    return std::move(plan_);
  }

 private:
  /// Whether all surviving ranks are inside CheckPoint, without local models (with them, the lost ranks'
  /// local models would be missing). Then all calls of the version have been completed, and the lost ranks
  /// may begin with the next version.
  bool AllAreEnding() const {
    bool any = false;
    for (const Report& report : reports_) {
      if (report.fresh) continue;
      any = true;
      if (report.version != plan_.version || !report.ending || !report.next.locals.empty()) return false;
    }
    return any;
  }

  Place PlaceOf(int rank) const {
    const Report& report = reports_[rank];
    if (report.fresh) return {true, &kNoCalls, &kNoModels, &kNoCalls};
    if (report.version == plan_.version) return {false, &report.before, &report.models, &report.calls};
    // Some rank has ended CheckPoint, so all ranks had reached it.
    if (report.version + 1 == plan_.version && report.ending) {
      return {false, &report.before, &report.next, &kNoCalls};
    }
    throw EngineError(fmt::format(
        "rank {} has ended {} versions, others have ended {}: do all ranks call CheckPoint equally often?",
        rank, report.version, plan_.version));
  }

  template <typename Has>
  int Holder(Has has) const {
    for (int rank = 0; rank < size_; ++rank) {
      if (!places_[rank].fresh && has(places_[rank])) return rank;
    }
    return -1;
  }

  void SendGlobalModel() {
    const int holder = Holder([](const Place& place) { return place.models->global_bytes.has_value(); });
    if (holder < 0) {
      const bool is_lost = Holder([](const Place& place) { return place.models->has_global; }) >= 0;
      if (!is_lost || std::ranges::none_of(places_, &Place::fresh)) return;
      throw Unrecoverable(fmt::format(
          "the global model of version {} is lost: it was checkpointed lazily and has been changed since",
          plan_.version));
    }
    const std::uint64_t bytes = *places_[holder].models->global_bytes;
    for (int rank = 0; rank < size_; ++rank) {
      if (places_[rank].fresh) plan_.transfers.push_back({What::kGlobalModel, 0, holder, rank, bytes});
    }
  }

  void SendLocalModels() {
    const int any = Holder([](const Place& place) { return !place.models->locals.empty(); });
    if (any < 0) return;
    for (int owner = 0; owner < size_; ++owner) {
      const auto number = static_cast<std::uint64_t>(owner);
      const int holder = Holder([&](const Place& place) { return Find(place.models->locals, number); });
      for (int rank = 0; rank < size_; ++rank) {
        if (!places_[rank].fresh || !KeepsLocal(rank, size_, owner, replicas_.locals)) continue;
        if (holder < 0) {
          throw Unrecoverable(fmt::format(
              "the local model of rank {} of version {} is lost: all {} ranks that kept it have ended; rabit_local_replica says how many keep a copy",
              owner, plan_.version, std::min(size_, replicas_.locals)));
        }
        const Kept& kept = *Find(places_[holder].models->locals, number);
        plan_.transfers.push_back({What::kLocalModel, number, holder, rank, kept.bytes});
      }
    }
  }

  void SendResults(What what, const CallsReport* Place::*calls, std::uint64_t end) {
    for (int rank = 0; rank < size_; ++rank) {
      const CallsReport& own = *(places_[rank].*calls);
      for (std::uint64_t call = own.completed; call < end; ++call) {
        if (Find(own.results, call) != nullptr) continue;
        const int holder = Holder([&](const Place& place) { return Find((place.*calls)->results, call); });
        if (holder < 0) Refuse(what, call);
        const Kept& kept = *Find((places_[holder].*calls)->results, call);
        plan_.transfers.push_back({what, call, holder, rank, kept.bytes});
      }
    }
  }

  [[noreturn]] void Refuse(What what, std::uint64_t call) const {
    if (what == What::kResultBefore) {
      throw Unrecoverable(fmt::format(
          "the result of call {} before LoadCheckPoint is lost: it is kept only with rabit_bootstrap_cache=1, by {} ranks (rabit_global_replica)",
          call + 1, std::min(size_, replicas_.results)));
    }
    throw Unrecoverable(fmt::format(
        "the result of call {} since version {} is lost: all {} ranks that kept it have ended; rabit_global_replica says how many keep it",
        call + 1, plan_.version, std::min(size_, replicas_.results)));
  }

  std::span<const Report> reports_;
  Replicas replicas_;
  int size_;
  std::vector<Place> places_;
  Plan plan_;
};

}  // namespace

std::string Encode(const Report& report) {
  WordWriter writer;
  writer.Word(report.fresh ? 1 : 0);
  writer.Word(report.loaded ? 1 : 0);
  writer.Calls(report.before);
  writer.Word(static_cast<std::uint64_t>(report.version));
  writer.Models(report.models);
  writer.Calls(report.calls);
  writer.Word(report.ending ? 1 : 0);
  writer.Models(report.next);
  return writer.Take();
}

Report Decode(std::string_view bytes) {
  WordReader reader(bytes);
  Report report;
  report.fresh = reader.Flag();
  report.loaded = reader.Flag();
  report.before = reader.Calls();
  report.version = reader.Count();
  report.models = reader.Models();
  report.calls = reader.Calls();
  report.ending = reader.Flag();
  report.next = reader.Models();
  reader.End();
  return report;
}

bool KeepsResult(int rank, int world_size, std::uint64_t call, int replicas) {
  const auto stride = static_cast<std::uint64_t>(std::max(1, world_size / std::max(1, replicas)));
  return (static_cast<std::uint64_t>(rank) + call) % stride == 0;
}

bool KeepsLocal(int rank, int world_size, int owner, int replicas) {
  return (rank - owner + world_size) % world_size < replicas;
}

Plan MakePlan(std::span<const Report> reports, const Replicas& replicas) {
  return Planner(reports, replicas).Make();
}

}  // namespace warren::recovery
