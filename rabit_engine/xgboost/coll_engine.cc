#include "rabit_engine/xgboost/coll_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "rabit_engine/base/error.h"
#include "rabit_engine/base/settings.h"
#include "rabit_engine/engine/join.h"
#include "rabit_engine/reporting/job_timeline.h"
#include "rabit_engine/xgboost/codes.h"
#include "rabit_engine/xgboost/coll_calls.h"
#include "rabit_engine/xgboost/coll_reduction.h"
#include "rabit_engine/xgboost/coll_table.h"
#include "rabit_engine/xgboost/loaded_library.h"
#include "rabit_engine/xgboost/own_communicator.h"
#include "rabit_engine/xgboost/vtable.h"

namespace warren::xgboost {
namespace {

std::atomic<std::uint64_t> num_served = 0;

/// Timeout for a peer that is alive but does not respond; XGBoost's default.
constexpr std::chrono::seconds kPatience{1800};

// --- finding XGBoost's classes ---

LoadedLibrary LibraryWith(const void* address) {
  auto library = LoadedLibrary::Containing(address);
  if (!library) throw Refusal("no library of this process contains it");
  return *std::move(library);
}

/// The virtual functions of two of XGBoost's classes.
struct Tables {
  std::span<void* const> coll;
  std::span<void* const> rabit_comm;
};

/// Throws Refusal unless both tables are found.
Tables FindTables(const LoadedLibrary& library) {
  constexpr std::size_t kSome = 5;  // enough of RabitComm's functions to recognize its table
  return {FindCollTable(library.image()),
          FindVtable(library.image(), "N7xgboost10collective9RabitCommE", kSome)};
}

/// Throws Refusal if ReadSafely does not work in this process.
void CheckThatMemoryCanBeRead() {
  const int here = 1;
  int read = 0;
  if (!ReadSafely(&here, &read, sizeof(read))) {
    throw Refusal(fmt::format("its memory cannot be read: {}", std::strerror(errno)));
  }
}

// --- learning how XGBoost calls Coll ---

/// The first members of XGBoost's class Comm, 2.1 to 3.4.
struct HeadOfComm {
  const void* functions = nullptr;
  const void* shared_from_this[2] = {};  ///< the object and its reference count
  std::int32_t world_size = 0;
  std::int32_t rank = 0;
};

/// The convention by which this XGBoost calls its class Coll, and the communicator that it passes.
struct Caller {
  Convention convention = Convention::kWithContext;
  const void* comm = nullptr;
  HeadOfComm head;
};

/// Reads the head of XGBoost's communicator. Throws Refusal if `comm` is not one.
HeadOfComm ReadHead(const Tables& tables, const OwnCommunicator& own, const void* comm) {
  HeadOfComm head{};
  if (!ReadSafely(comm, &head, sizeof(head)) || head.functions != tables.rabit_comm.data() ||
      head.world_size != own.world_size() || head.rank != own.rank()) {
    throw Refusal("the communicator that it calls with has an unknown layout");
  }
  return head;
}

/// Inspects calls with known arguments on their way to XGBoost's own functions. They must be inspected during
/// the call, because spans may lie on the caller's stack.
class Probe final : public CallHandler {
 public:
  AllreduceCall allreduce;
  BroadcastCall broadcast;
  AllgatherCall allgather;

  bool Handle(CollFunction function, const Words& words) override {
    ++num_calls_;
    if (function == CollFunction::kAllreduce) {
      convention_ = ConventionOf(words, allreduce);
      if (convention_) allreduce.comm = ReadAllreduce(*convention_, words, Reading::kSafe).comm;
    } else if (function == CollFunction::kBroadcast && convention_) {
      const BroadcastCall seen = ReadBroadcast(*convention_, words, Reading::kSafe);
      knows_broadcast_ = seen.comm == allreduce.comm && seen.data.data == broadcast.data.data &&
                         seen.data.size == broadcast.data.size && seen.root == broadcast.root;
    } else if (function == CollFunction::kAllgather && convention_) {
      const AllgatherCall seen = ReadAllgather(*convention_, words, Reading::kSafe);
      knows_allgather_ = seen.comm == allreduce.comm && seen.data.data == allgather.data.data &&
                         seen.data.size == allgather.data.size;
    }
    return false;
  }

  /// Must be called after one call of each kind. Throws Refusal if the arguments of a call were not
  /// recognized.
  Caller Result() const {
    if (num_calls_ != 3) throw Refusal("its collective calls do not use the functions of its class Coll");
    for (const auto& [known, call] :
         {std::pair(convention_.has_value(), "an allreduce"), std::pair(knows_broadcast_, "a broadcast"),
          std::pair(knows_allgather_, "an allgather")}) {
      if (!known) throw Refusal(fmt::format("it passes the arguments of {} in an unknown way", call));
    }
    return {*convention_, allreduce.comm, {}};
  }

 private:
  int num_calls_ = 0;
  std::optional<Convention> convention_;
  bool knows_broadcast_ = false;
  bool knows_allgather_ = false;
};

template <typename Elements>
Bytes BytesOf(Elements& elements) {
  return {elements.size() * sizeof(elements[0]), reinterpret_cast<std::byte*>(elements.data())};
}

/// Makes an allreduce, a broadcast and an allgather over XGBoost's own links, and inspects how the arguments
/// arrive. A collective call. Throws EngineError if a call fails, and Refusal only after the last call.
Caller ProbeCalls(const Tables& tables, const OwnCommunicator& own) {
  std::array<std::int64_t, 3> summed{1, 2, 3};
  std::array<std::byte, 40> sent{};
  std::vector<std::int64_t> gathered(own.world_size());
  Probe probe;
  probe.allreduce = {nullptr, BytesOf(summed), kI8, kSum};
  probe.broadcast = {nullptr, BytesOf(sent), own.world_size() - 1};
  probe.allgather = {nullptr, BytesOf(gathered)};
  const HandledBy handled(&probe);
  own.Allreduce(summed.data(), summed.size(), kI8, kSum);
  own.Broadcast(sent.data(), sent.size(), probe.broadcast.root);
  own.Allgather(gathered.data(), probe.allgather.data.size);
  Caller caller = probe.Result();
  caller.head = ReadHead(tables, own, caller.comm);
  return caller;
}

// --- serving XGBoost's calls ---

/// Serves the calls of one thread over one communicator.
class Serving final : public CallHandler {
 public:
  Serving(const Caller& caller, std::unique_ptr<NativeCommunicator> engine,
          std::shared_ptr<Timeline> timeline)
      : caller_(caller), engine_(std::move(engine)), timeline_(std::move(timeline)) {}

  bool Handle(CollFunction function, const Words& words) override {
    if (!timeline_) return Serve(function, words);
    const Timeline::Clock::time_point begin = Timeline::Clock::now();
    if (!Serve(function, words)) return false;
    timeline_->Add({"XGBoost", {}}, NameOf(function), begin, Timeline::Clock::now());
    return true;
  }

  std::uint64_t num_calls() const { return num_calls_; }
  bool has_failed() const { return !first_error_.empty(); }
  /// Returns when all ranks have called this function. There is no time limit: XGBoost's own shutdown does
  /// not wait for other ranks, so some may still be busy elsewhere.
  void Finalize() {
    engine_->SetCollectiveTimeout({});
    engine_->Finalize();
  }
  void GiveUp() noexcept { engine_->GiveUp(); }

 private:
  static std::string_view NameOf(CollFunction function) {
    switch (function) {
      case CollFunction::kAllreduce:
        return "Allreduce";
      case CollFunction::kBroadcast:
        return "Broadcast";
      case CollFunction::kAllgather:
        return "Allgather";
      case CollFunction::kAllgatherV:
        return "AllgatherV";
    }
    return "a call";
  }

  bool Serve(CollFunction function, const Words& words) {
    switch (function) {
      case CollFunction::kAllreduce:
        return Allreduce(ReadAllreduce(caller_.convention, words));
      case CollFunction::kBroadcast:
        return Broadcast(ReadBroadcast(caller_.convention, words));
      case CollFunction::kAllgather:
        return Allgather(ReadAllgather(caller_.convention, words));
      case CollFunction::kAllgatherV:
        return AllgatherV(ReadAllgatherV(caller_.convention, words));
    }
    return false;
  }

  /// Whether `comm` is still the communicator for which Begin was called: XGBoost may have finalized it, or
  /// created another at the same address. False in a forked process, which is not a rank, and if `bytes` is
  /// invalid.
  bool IsServed(const void* comm, std::size_t bytes) const {
    if (comm != caller_.comm || bytes > kMostBytes || NumForks() != num_forks_) return false;
    const auto& head = *static_cast<const HeadOfComm*>(comm);
    return head.world_size == caller_.head.world_size && head.rank == caller_.head.rank &&
           head.shared_from_this[1] == caller_.head.shared_from_this[1];
  }

  bool Allreduce(const AllreduceCall& call) {
    if (!IsServed(call.comm, call.data.size)) return false;
    const std::optional<Reduction> reduction = ReductionOf(call.type, call.operation);
    if (!reduction || call.data.size % reduction->element_bytes() != 0) return false;
    return Serve("allreduce", [&] {
      engine_->Allreduce(call.data.data, call.data.size / reduction->element_bytes(), *reduction);
    });
  }

  bool Broadcast(const BroadcastCall& call) {
    if (!IsServed(call.comm, call.data.size) || call.root < 0 || call.root >= engine_->world_size())
      return false;
    return Serve("broadcast", [&] { engine_->Broadcast(call.data.data, call.data.size, call.root); });
  }

  bool Allgather(const AllgatherCall& call) {
    if (!IsServed(call.comm, call.data.size)) return false;
    const auto world_size = static_cast<std::size_t>(engine_->world_size());
    offsets_.resize(world_size + 1);
    for (std::size_t rank = 0; rank < world_size; ++rank) offsets_[rank] = call.data.size / world_size * rank;
    offsets_.back() = call.data.size;  // the last rank has the remainder, as in XGBoost's own allgather
    return Serve("allgather", [&] { engine_->Allgather(call.data.data, offsets_); });
  }

  bool AllgatherV(const AllgatherVCall& call) {
    const auto rank = static_cast<std::size_t>(engine_->rank());
    const auto world_size = static_cast<std::size_t>(engine_->world_size());
    if (!IsServed(call.comm, call.received.size) || call.sizes.size() != world_size ||
        call.segments.size() != world_size + 1) {
      return false;
    }
    offsets_.assign(1, 0);
    for (const std::int64_t size : call.sizes) {
      if (size < 0) return false;
      offsets_.push_back(offsets_.back() + static_cast<std::size_t>(size));
    }
    if (offsets_.back() != call.received.size || offsets_[rank + 1] - offsets_[rank] != call.data.size)
      return false;
    std::copy(offsets_.begin(), offsets_.end(), call.segments.begin());
    std::byte* const own = call.received.data + offsets_[rank];
    if (own != call.data.data && call.data.size > 0) std::memmove(own, call.data.data, call.data.size);
    return Serve("allgather", [&] { engine_->Allgather(call.received.data, offsets_); });
  }

  template <typename Function>
  bool Serve(const char* name, Function&& function) {
    const auto failed = [&](const std::string& why) {
      return EngineError(fmt::format("XGBoost's {}, over Warren's engine: {}", name, why));
    };
    if (!first_error_.empty()) {
      throw failed(
          fmt::format("an earlier call has failed and this rank is out of the job: {}", first_error_));
    }
    try {
      function();
    } catch (const EngineError& error) {
      first_error_ = error.what();
      throw failed(first_error_);
    }
    ++num_calls_;
    num_served.fetch_add(1, std::memory_order_relaxed);
    return true;
  }

  /// XGBoost's own sizes are signed; a negative size arrives as a huge number.
  static constexpr std::size_t kMostBytes = std::numeric_limits<std::int64_t>::max();

  Caller caller_;
  std::unique_ptr<NativeCommunicator> engine_;
  const std::shared_ptr<Timeline> timeline_;  ///< null if no timeline was requested
  std::vector<std::size_t> offsets_;
  std::uint64_t num_calls_ = 0;
  std::uint64_t num_forks_ = NumForks();
  std::string first_error_;
};

/// Calls XGBoost's functions on data with known results, and checks the results. Throws Refusal if a result
/// is wrong or a call was not served, EngineError if a call fails.
void TestItself(const OwnCommunicator& own, Serving& serving) {
  const int rank = own.rank();
  const int world_size = own.world_size();
  const HandledBy handled(&serving);
  bool right = true;

  std::vector<double> sums(1000);
  std::iota(sums.begin(), sums.end(), rank);
  own.Allreduce(sums.data(), sums.size(), kF8, kSum);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    right &= sums[i] == static_cast<double>(i) * world_size + world_size * (world_size - 1) / 2.0;
  }
  std::array<std::uint16_t, 3> greatest{static_cast<std::uint16_t>(rank), 7, 0};
  own.Allreduce(greatest.data(), greatest.size(), kU2, kMax);
  right &= greatest == std::array<std::uint16_t, 3>{static_cast<std::uint16_t>(world_size - 1), 7, 0};
  std::int64_t sent = rank;
  own.Broadcast(&sent, sizeof(sent), world_size - 1);
  right &= sent == world_size - 1;
  std::vector<std::int32_t> gathered(world_size, -1);
  gathered[rank] = rank;
  own.Allgather(gathered.data(), gathered.size() * sizeof(std::int32_t));
  for (int other = 0; other < world_size; ++other) right &= gathered[other] == other;

  if (serving.num_calls() != 4) {
    throw Refusal(fmt::format("{} of 4 calls reached Warren's engine", serving.num_calls()));
  }
  if (!right) throw Refusal("a collective over Warren's engine gave a wrong result");
}

/// Holds the Serving of a thread.
class ThreadState {
 public:
  ~ThreadState() { Release(); }
  void Serve(std::unique_ptr<Serving> serving) {
    serving_ = std::move(serving);
    num_forks_ = NumForks();
    SetHandler(serving_.get());
  }
  /// Stops serving. Returns the thread's Serving; null if it had none, or in a forked process.
  std::unique_ptr<Serving> Release() {
    SetHandler(nullptr);
    // In a forked process the links and the memory belong to the parent, which is still a rank.
    if (serving_ && NumForks() != num_forks_) static_cast<void>(serving_.release());
    return std::move(serving_);
  }

 private:
  std::unique_ptr<Serving> serving_;
  std::uint64_t num_forks_ = 0;
};
thread_local ThreadState thread_state;

}  // namespace

std::string Objections(const void* address_in_xgboost) {
  try {
    const LoadedLibrary library = LibraryWith(address_in_xgboost);
    OwnCommunicator{library};
    FindTables(library);
  } catch (const Refusal& refusal) {
    return refusal.what();
  }
  return {};
}

Beginning Begin(const void* address_in_xgboost, const Wish& wish) {
  thread_state.Release();
  Beginning beginning;
  try {
    const LoadedLibrary library = LibraryWith(address_in_xgboost);
    // OwnCommunicator's Refusal need not be agreed on in a round: all ranks have the same version of XGBoost,
    // so it is thrown on all ranks or on none.
    const auto rounds = std::make_shared<Rounds>(OwnCommunicator(library));
    const OwnCommunicator& own = rounds->own();
    const auto rank = static_cast<std::uint64_t>(own.rank());
    const auto world_size = static_cast<std::uint64_t>(own.world_size());
    rounds->Meet();
    const std::uint64_t first_who_wants = rounds->Greatest(wish.wants ? world_size - rank : 0);
    beginning.tells = wish.wants && first_who_wants == world_size - rank;
    beginning.is_demanded = rounds->Greatest(wish.demands ? 1 : 0) > 0;
    Tables tables;
    Settings settings;
    Caller caller;
    std::unique_ptr<Serving> serving;
    rounds->Do([&] {
      if (!wish.objection.empty()) throw Refusal(wish.objection);
      settings = ReadSettings({});
      if (settings.collective_timeout.count() == 0) {
        settings.collective_timeout = wish.timeout.count() > 0 ? wish.timeout : kPatience;
      }
      CheckThatMemoryCanBeRead();
      tables = FindTables(library);
      Intercept(tables.coll, library.image());
    });
    rounds->Do([&] { caller = ProbeCalls(tables, own); });
    rounds->Do([&] {
      auto engine = JoinOver(MakeBootstrapOver(rounds), settings);
      auto timeline = reporting::NewTimeline(settings, *engine);
      serving = std::make_unique<Serving>(caller, std::move(engine), std::move(timeline));
    });
    rounds->Do([&] {
      try {
        TestItself(own, *serving);
      } catch (...) {
        serving->GiveUp();
        throw;
      }
    });
    thread_state.Serve(std::move(serving));
    beginning.serves = true;
  } catch (const Refusal& refusal) {
    beginning.why_not = refusal.what();
  }
  return beginning;
}

void End(bool failed) {
  const std::unique_ptr<Serving> serving = thread_state.Release();
  if (!serving) return;
  if (failed || serving->has_failed()) {
    serving->GiveUp();
  } else {
    serving->Finalize();
  }
}

std::uint64_t NumServed() {
  return num_served.load(std::memory_order_relaxed);
}

}  // namespace warren::xgboost
