// All sessions made by Init are in one list. Each thread remembers the number of the session that its Init
// made.
#include "rabit_engine/api/session.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "rabit_engine/api/caller_function.h"
#include "rabit_engine/api/reduce_from_to.h"
#include "rabit_engine/base/error.h"
#include "rabit_engine/base/fnv1a.h"
#include "rabit_engine/base/say.h"
#include "rabit_engine/base/settings.h"
#include "rabit_engine/call/slices.h"
#include "rabit_engine/engine/join.h"
#include "rabit_engine/reporting/job_timeline.h"

namespace warren::api {
namespace {

// The number of element types and operations that rabit's callers may use: all of the engine's types, but not
// all of its operations.
constexpr int kNumRabitTypes = kNumDataTypes;
constexpr int kNumRabitOperations = 4;

std::string Describe(const Call& call);

struct Registry {
  std::mutex mutex;
  std::vector<std::pair<std::uint64_t, std::shared_ptr<Session>>> sessions;  // with their numbers
  std::uint64_t last_number = 0;
  int num_met = 0;                    // number of existing sessions made by Meet, or from such sessions
  std::optional<int> rank_that_left;  // the most recent rank to leave, for messages
  // The process that owns the sessions, their links, their shared memory and their place at the tracker; set
  // only in processes forked from it while sessions existed.
  std::optional<pid_t> owner;

  std::shared_ptr<Session> Find(std::uint64_t number) const {
    for (const auto& [key, session] : sessions) {
      if (key == number) return session;
    }
    return nullptr;
  }
};

// Never destroyed: a program may end without Finalize while threads are still in calls. The fork handlers
// make sure that the mutex is free in the child.
Registry& AllSessions() {
  static Registry& registry = *[] {
    pthread_atfork([] { AllSessions().mutex.lock(); }, [] { AllSessions().mutex.unlock(); },
                   [] {
                     Registry& inherited = AllSessions();
                     const bool has_any = !inherited.sessions.empty() || inherited.num_met > 0;
                     if (has_any && !inherited.owner) inherited.owner = getppid();
                     inherited.mutex.unlock();
                   });
    return new Registry;
  }();
  return registry;
}

// Throws Misuse in a process forked from the process that joined the job.
void RequireOwner(const Call& call) {
  const auto owner = AllSessions().owner;
  if (!owner) return;
  throw Misuse(fmt::format(
      "{}: called in process {}, which was forked from process {} after it had joined its job; only the parent takes part in the job. "
      "Fork before Init, or start processes without fork (multiprocessing's \"spawn\" or \"forkserver\")",
      Describe(call), getpid(), *owner));
}

// The number of the session made by this thread's Init, even if that session has ended. A plain number,
// because destructors of the program's statics may still query the rank after the destruction of thread_local
// objects.
thread_local std::uint64_t session_of_this_thread = 0;

bool HasName(const Call& call) {
  return call.options != nullptr && !call.options->name.empty();
}

std::string Describe(const Call& call) {
  if (HasName(call)) return fmt::format("{} '{}'", call.name, call.options->name);
  if (call.file == nullptr || call.line <= 0) return call.name;
  if (call.function == nullptr) return fmt::format("{} ({}:{})", call.name, call.file, call.line);
  return fmt::format("{} ({}:{} in {})", call.name, call.file, call.line, call.function);
}

// Rethrows the current exception, an EngineError, with a message that names the user's call. The type stays
// the same, except that Refused becomes Misuse, and types without a handler below become EngineError.
[[noreturn]] void RethrowFor(const std::string& place) {
  try {
    throw;
  } catch (const LostPeer& error) {
    throw LostPeer(error.rank(), fmt::format("{}: {}", place, error.what()), error.shortage());
  } catch (const LocalShortage& error) {
    throw LocalShortage(error.error(), fmt::format("{}: {}", place, error.what()));
  } catch (const Misuse& error) {
    throw Misuse(fmt::format("{}: {}", place, error.what()));
  } catch (const TimedOut& error) {
    throw TimedOut(fmt::format("{}: {}", place, error.what()), error.rank());
  } catch (const EngineError& error) {
    throw EngineError(fmt::format("{}: {}", place, error.what()));
  }
}

/// Returns the timeline that all sessions made by Meet share in this process; null if no timeline was
/// requested.
std::shared_ptr<Timeline> TimelineOf(const Settings& settings, const Communicator& communicator) {
  static std::mutex mutex;
  static std::weak_ptr<Timeline> current;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Timeline> timeline = current.lock();
  if (!timeline) current = timeline = reporting::NewTimeline(settings, communicator);
  return timeline;
}

SessionOptions OptionsOf(const Settings& settings) {
  SessionOptions options;
  options.device = {settings.collective_timeout, settings.debug, settings.tls};
  const auto seconds = [](std::chrono::seconds some) { return static_cast<double>(some.count()); };
  options.named = {settings.fusion_bytes, settings.cycle, settings.autotune, seconds(settings.stall_warning),
                   seconds(settings.collective_timeout)};
  return options;
}

}  // namespace

void Session::Init(const Call& call, int argc, const char* const* argv) {
  RequireOwner(call);
  if (Find(Threads::kSeparate)) return;
  std::vector<std::string> arguments;
  for (int i = 0; argv != nullptr && i < argc; ++i) {
    if (argv[i] != nullptr) arguments.emplace_back(argv[i]);
  }
  try {
    Settings settings = ReadSettings(arguments);
    if (settings.role != "worker") {
      // Jobs with parameter servers start the same command in every role; rabit programs are workers.
      Say("rabit: this process was started as a {}, and only workers have work to do; exiting with 0",
          settings.role);
      std::exit(0);
    }
    const bool is_told = settings.bootstrap != BootstrapKind::kAuto || !settings.tracker_host.empty() ||
                         settings.engine == EngineKind::kMpi;
    if (!is_told) settings.bootstrap = BootstrapOfLauncher(MpiCluesOfThisProcess(), &wire::FromEnvironment);
    auto communicator = recovery::RecoverableCommunicator::Join(settings);
    SessionOptions options = OptionsOf(settings);
    options.timeline = reporting::NewTimeline(settings, *communicator);
    auto session = std::make_shared<Session>(std::move(communicator), std::move(options));
    Registry& registry = AllSessions();
    const std::lock_guard lock(registry.mutex);
    session_of_this_thread = ++registry.last_number;
    registry.sessions.emplace_back(session_of_this_thread, session);
  } catch (const EngineError&) {
    RethrowFor(Describe(call));
  }
}

std::shared_ptr<Session> Session::Meet(const Call& call, std::unique_ptr<Bootstrap> bootstrap) {
  RequireOwner(call);
  try {
    const Settings settings = ReadSettings({});
    auto communicator = JoinOver(std::move(bootstrap), settings);
    communicator->LetRanksLeave();
    SessionOptions options = OptionsOf(settings);
    options.timeline = TimelineOf(settings, *communicator);
    auto session = std::make_shared<Session>(
        std::make_unique<recovery::RecoverableCommunicator>(std::move(communicator)), std::move(options));
    session->CountAsMet();
    return session;
  } catch (const EngineError&) {
    RethrowFor(Describe(call));
  }
}

std::shared_ptr<Session> Session::Find(Threads threads) {
  Registry& registry = AllSessions();
  const std::lock_guard lock(registry.mutex);
  if (auto own = registry.Find(session_of_this_thread)) return own;
  if (threads == Threads::kSeparate || registry.sessions.size() != 1) return nullptr;
  return registry.sessions.front().second;
}

std::shared_ptr<Session> Session::Require(const Call& call, Threads threads) {
  RequireOwner(call);
  if (auto session = Find(threads)) return session;
  Registry& registry = AllSessions();
  const std::lock_guard lock(registry.mutex);
  if (!registry.sessions.empty()) {
    throw Misuse(fmt::format(
        "rank unknown: {}: called in a thread that has not called Init; ranks of this process that have: {}",
        Describe(call), registry.sessions.size()));
  }
  if (registry.rank_that_left) {
    throw Misuse(fmt::format("rank {}: {}: called after Finalize, when this process had left its job",
                             *registry.rank_that_left, Describe(call)));
  }
  throw Misuse(fmt::format("rank unknown: {}: called before Init", Describe(call)));
}

bool Session::Finalize(const Call& call, Threads threads) {
  const std::shared_ptr<Session> session = Find(threads);
  if (!session || AllSessions().owner) return true;  // a forked process has nothing to leave
  session->RunEndings();
  session->AwaitPendingCalls(call);
  const CallLock lock(*session, call);
  {
    Registry& registry = AllSessions();
    const std::lock_guard lock(registry.mutex);
    std::erase_if(registry.sessions, [&](const auto& entry) { return entry.second == session; });
    registry.rank_that_left = session->rank_;
  }
  const std::shared_ptr<Timeline> timeline = session->options_.timeline;
  const std::unique_ptr<Timeline, void (*)(Timeline*)> end(timeline.get(),
                                                           [](Timeline* of) { of->Finish(); });
  // Destroyed in reverse order: work in progress on devices needs the communicator.
  const auto communicator = std::move(session->communicator_);
  const auto devices = std::move(session->devices_);
  if (!session->first_error_.empty()) return false;
  // The error for threads that still hold a reference to the session.
  session->first_error_ = "this rank has left the job with Finalize";
  try {
    if (devices) devices->Finish();
    communicator->Finalize();
  } catch (const EngineError&) {
    RethrowFor(session->Where(call));
  }
  return true;
}

void Session::BeforeFinalize(std::weak_ptr<void> whose, std::function<void()> function) {
  const std::lock_guard lock(endings_->mutex);
  std::erase_if(endings_->functions, [](const auto& entry) { return entry.first.expired(); });
  endings_->functions.emplace_back(std::move(whose), std::move(function));
}

void Session::RunEndings() {
  std::unique_lock lock(endings_->mutex);
  const auto functions = std::exchange(endings_->functions, {});
  lock.unlock();
  for (const auto& [whose, function] : functions) {
    const std::shared_ptr<void> kept = whose.lock();
    if (kept) function();
  }
}

Session::Session(std::unique_ptr<recovery::RecoverableCommunicator> communicator, SessionOptions options)
    : communicator_(std::move(communicator)),
      options_(std::move(options)),
      timeline_(options_.timeline.get()),
      rank_(communicator_->rank()),
      world_size_(communicator_->world_size()),
      is_distributed_(communicator_->is_distributed()),
      has_timeouts_(communicator_->has_timeouts()),
      host_(communicator_->host()),
      name_(communicator_->name()),
      place_(fmt::format("rank {}", communicator_->rank_in_job(rank_))) {
  for (int rank = 0; rank < world_size_; ++rank) ranks_in_job_.push_back(communicator_->rank_in_job(rank));
  if (name_ != "world") place_ += fmt::format(", {} of {} in communicator {}", rank_, world_size_, name_);
}

Session::~Session() {
  call_queue_->Close();
  if (!has_met_) return;
  Registry& registry = AllSessions();
  const std::lock_guard lock(registry.mutex);
  --registry.num_met;
}

/// Makes processes that are forked while this session exists refuse calls.
void Session::CountAsMet() {
  Registry& registry = AllSessions();
  const std::lock_guard lock(registry.mutex);
  ++registry.num_met;
  has_met_ = true;
}

std::string Session::Where(const Call& call) const {
  return fmt::format("{}: {}", place_, Describe(call));
}

void Session::Refuse(const Call& call, const std::string& what) const {
  throw Misuse(fmt::format("{}: {}", Where(call), what));
}

std::chrono::milliseconds Session::Timeout(const Call& call, double seconds) const {
  if (seconds == 0) return {};
  if (!(seconds > 0)) {
    Refuse(
        call,
        fmt::format("a timeout of {} s; expected 0 or more seconds, where 0 means that rabit_timeout applies",
                    seconds));
  }
  if (!has_timeouts_) {
    Refuse(call,
           fmt::format(
               "a timeout of {} s, but this engine has no timeouts; set WARREN_ENGINE=native, or omit it",
               seconds));
  }
  constexpr double kLongest = 1e9;  // longer timeouts could overflow the clock's time points
  return std::chrono::ceil<std::chrono::milliseconds>(
      std::chrono::duration<double>(std::min(seconds, kLongest)));
}

void Session::SetUsualTimeout(const Call& call, double seconds) {
  const std::chrono::milliseconds timeout = Timeout(call, seconds);
  AwaitPendingCalls(call);
  const CallLock lock(*this, call);
  usual_timeout_ = timeout;
  if (communicator_) SetTimeout(timeout);
}

Session::CallLock::CallLock(Session& session, const Call& call) : session_(session) {
  RequireOwner(call);  // checked again: some callers did not get the session from Require
  constexpr int kTurnsOfYielding = 100;
  constexpr std::chrono::microseconds kTurnPause{100};
  int turns = 0;
  for (;;) {
    const std::uint64_t turns_before = session.idle_turns_;
    if (!session.busy_.test_and_set(std::memory_order_acquire)) break;
    session.RefuseInsideCall(call);
    // WhenIdle may have held busy_ and released it since.
    const bool may_be_idle_turn = turns_before % 2 != 0 || session.idle_turns_ != turns_before;
    // If calls have been enqueued, the queue's thread may be in a call at any time: wait for it.
    if (!may_be_idle_turn && !session.has_queued_) {
      session.Refuse(
          call,
          "another thread is in a call of this rank; calls that involve other ranks must be made one at a time");
    }
    if (turns < kTurnsOfYielding) {
      ++turns;
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kTurnPause);
    }
  }
  session.caller_.store(std::this_thread::get_id(), std::memory_order_relaxed);
}

Session::CallLock::~CallLock() {
  session_.caller_.store(std::thread::id(), std::memory_order_relaxed);
  session_.busy_.clear(std::memory_order_release);
}

void Session::RefuseInsideCall(const Call& call) const {
  // Only this thread can have stored its own id, so no ordering is needed.
  if (caller_.load(std::memory_order_relaxed) != std::this_thread::get_id()) return;
  Refuse(call,
         "it was called from a function that another call of this communicator runs, such as a reduction "
         "function; make the call before or after that one, or on another communicator");
}

std::shared_ptr<PendingCall> Session::Enqueue(const Call& call, std::function<void()> work) {
  RequireOwner(call);
  has_queued_ = true;
  return call_queue_->Add(std::move(work));
}

void Session::AwaitPendingCalls(const Call& call) {
  if (!has_queued_.load(std::memory_order_relaxed)) return;
  RequireOwner(call);
  RefuseInsideCall(call);
  call_queue_->Drain();
}

/// Records the lifetime of this object on the timeline, if there is one, as the time of the call.
class Session::ScopedTrace {
 public:
  ScopedTrace(const Session& session, const Call& call) : session_(session), call_(call) {
    if (session.timeline_ != nullptr) [[unlikely]]
      begin_ = Timeline::Clock::now();
  }
  ~ScopedTrace() {
    if (session_.timeline_ != nullptr) [[unlikely]]
      session_.AddToTimeline(call_, begin_);
  }
  ScopedTrace(const ScopedTrace&) = delete;
  ScopedTrace& operator=(const ScopedTrace&) = delete;

 private:
  const Session& session_;
  const Call& call_;
  Timeline::Clock::time_point begin_;
};

void Session::AddToTimeline(const Call& call, Timeline::Clock::time_point begin) const {
  timeline_->Add({name_, {}}, HasName(call) ? call.options->name : call.name, begin, Timeline::Clock::now());
}

/// Applies the call's timeout, if any, to the communicator during this object's lifetime.
class Session::ScopedTimeout {
 public:
  ScopedTimeout(Session& session, const CallOptions& options) : session_(session) {
    if (options.timeout.count() > 0) session_.SetTimeout(options.timeout);
  }
  ~ScopedTimeout() { session_.SetTimeout(session_.usual_timeout_); }
  ScopedTimeout(const ScopedTimeout&) = delete;
  ScopedTimeout& operator=(const ScopedTimeout&) = delete;

 private:
  Session& session_;
};

template <typename Function>
void Session::Communicate(const Call& call, Function&& function) {
  AwaitPendingCalls(call);
  const CallLock lock(*this, call);
  // A restarted process does not call the prepare function, and would miss the calls made in it.
  if (prepares_ && communicator_ && communicator_->recovers())
    Refuse(
        call,
        "it was called from the prepare function of an allreduce, which is skipped when a process catches up");
  if (!first_error_.empty()) {
    throw EngineError(fmt::format(
        "{}: an earlier call has failed and this rank is out of {}. The error was: {}", Where(call),
        name_ == "world" ? "the job; only Finalize can still be called" : "this communicator", first_error_));
  }
  const ScopedTrace trace(*this, call);
  try {
    if (call.options == nullptr) [[likely]] {
      function();
    } else {
      const ScopedTimeout timeout(*this, *call.options);
      function();
    }
  } catch (const Refused&) {
    RethrowFor(Where(call));
  } catch (const EngineError& error) {
    first_error_ = error.what();
    RethrowFor(Where(call));
  } catch (const std::exception& error) {
    first_error_ = error.what();
    communicator_->GiveUp();  // no other rank has this error (std::bad_alloc, an exception from the caller)
    throw;
  } catch (...) {
    first_error_ = "an exception from the caller's reduction function";
    communicator_->GiveUp();
    throw;
  }
}

void Session::GiveUp(const std::string& why) noexcept {
  try {
    const CallLock lock(*this, Call{"giving up"});
    if (!first_error_.empty() || !communicator_) return;
    first_error_ = why;
    communicator_->GiveUp();
  } catch (const EngineError&) {
    // Another thread is in a call, or this is a forked process.
  }
}

void Session::CheckClosely(const Call& call, const Operation& operation) const {
  const std::string complaint = Complaint(operation, rank_, world_size_);
  if (!complaint.empty()) Refuse(call, complaint);
}

void Session::Run(const Call& call, const Operation& operation) {
  Check(call, operation);
  const bool is_for_engine =
      operation.reduction == nullptr || operation.in_place || operation.kind == Collective::kAllreduce;
  if (is_for_engine && !operation.average) [[likely]] {
    return Communicate(call, [&] { communicator_->Run(operation); });
  }
  if (GoesInPieces(operation, world_size_)) CompareOffsets(call, operation.receive_offsets);
  ReduceFromTo(operation, rank_, world_size_,
               [&](const Operation& in_place) { Communicate(call, [&] { communicator_->Run(in_place); }); });
}

/// Refuses the call unless all ranks have the same offsets.
void Session::CompareOffsets(const Call& call, std::span<const std::size_t> offsets) {
  struct Told {
    std::uint64_t elements;
    std::uint64_t digest;
  };
  std::vector<Told> told(static_cast<std::size_t>(world_size_));
  told[static_cast<std::size_t>(rank_)] = {offsets.back(), Fnv1a(offsets)};
  Run(call, Operation::Allgather(told.data(), EqualOffsets(world_size_, sizeof(Told))));
  for (std::size_t r = 1; r < told.size(); ++r) {
    if (told[r].elements == told[0].elements && told[r].digest == told[0].digest) continue;
    Refuse(
        call,
        fmt::format(
            "rank {} has {} elements and rank 0 has {}, or their counts for some rank differ; all ranks must give the same counts",
            r, told[r].elements, told[0].elements));
  }
}

void Session::Allreduce(const Call& call, void* buffer, std::size_t count, const Reduction& reduction,
                        Prepare prepare) {
  const Operation operation = Operation::Allreduce(buffer, count, reduction);
  Check(call, operation);
  // Called outside Communicate, because the function may itself make calls. Skipped in a restarted process
  // that is catching up, because the result is already known.
  if (prepare.function != nullptr) AwaitPendingCalls(call);  // IsReplayed is about the next call
  if (prepare.function != nullptr && !IsReplayed()) {
    // Restores the flag, because the function may itself make an allreduce with a prepare function.
    struct Preparing {
      bool& flag;
      const bool before = std::exchange(flag, true);
      ~Preparing() { flag = before; }
    };
    const Preparing preparing{prepares_};
    const std::uint64_t num_forks = NumForks();
    try {
      prepare.function(prepare.argument);
    } catch (const std::exception& error) {
      // The other ranks are in this allreduce: a further call of this rank would be taken for it.
      GiveUp(fmt::format("{}: the prepare function threw: {}", Where(call), error.what()));
      throw;
    } catch (...) {
      GiveUp(fmt::format("{}: the prepare function threw an exception", Where(call)));
      throw;
    }
    RequireNoFork(num_forks, "the prepare function");
  }
  Communicate(call, [&] { communicator_->Run(operation); });
}

bool Session::KnowsReduction(int type, int operation) {
  return type >= 0 && type < kNumRabitTypes && operation >= 0 && operation < kNumRabitOperations &&
         IsDefined(static_cast<DataType>(type), static_cast<ReduceOp>(operation));
}

Reduction Session::TypedReduction(const Call& call, int type, int operation) const {
  if (!KnowsReduction(type, operation)) [[unlikely]] {
    RefuseReduction(call, type, operation);
  }
  return Reduction::Typed(static_cast<DataType>(type), static_cast<ReduceOp>(operation));
}

void Session::RefuseReduction(const Call& call, int type, int operation) const {
  ElementBytes(call, type);
  if (operation < 0 || operation >= kNumRabitOperations) {
    Refuse(call, fmt::format("{} is not an operation; 0 is max, 1 min, 2 sum, 3 bitwise or", operation));
  }
  Refuse(call, fmt::format("there is no {} of {}", Name(static_cast<ReduceOp>(operation)),
                           Name(static_cast<DataType>(type))));
}

void Session::AllreduceTyped(const Call& call, void* buffer, std::size_t count, int type, int operation,
                             Prepare prepare) {
  Allreduce(call, buffer, count, TypedReduction(call, type, operation), prepare);
}

void Session::AllgatherSlice(const Call& call, void* buffer, std::size_t element_bytes, std::size_t total,
                             std::size_t begin, std::size_t size_or_end) {
  if (buffer == nullptr && total > 0) Refuse(call, fmt::format("the buffer of {} elements is NULL", total));
  if (element_bytes != 0 && total > std::numeric_limits<std::ptrdiff_t>::max() / element_bytes) {
    Refuse(call, fmt::format("{} elements of {} bytes are more than memory can hold", total, element_bytes));
  }
  Communicate(call, [&] {
    // A single slice often does not show whether its size or its end was given; all slices together do.
    const std::vector<Slice> slices = GatherSlices(*communicator_, {total, begin, size_or_end});
    auto offsets = JoinedOffsets(slices, total, true);
    if (offsets.size() <= slices.size()) offsets = JoinedOffsets(slices, total);
    if (offsets.size() <= slices.size()) {
      std::string all;
      for (const Slice& slice : slices) {
        all += fmt::format(" ({}, {}) of {}", slice.begin, slice.end, slice.total);
      }
      throw Misuse(fmt::format(
          "the slices are not contiguous: in rank order, (begin, size) or (begin, end) are{} elements", all));
    }
    for (std::size_t& offset : offsets) offset *= element_bytes;
    communicator_->Allgather(buffer, offsets);
  });
}

// --- other communicators -----------------------------------------------------------------------------------

std::vector<int> Session::Hosts(const Call& call) {
  std::vector<int> hosts;
  Communicate(call, [&] {
    for (int rank = 0; rank < world_size_; ++rank) hosts.push_back(communicator_->host_of(rank));
  });
  return hosts;
}

int Session::RankInJob(const Call& call, int rank) const {
  if (rank < 0 || rank >= world_size_) {
    Refuse(call, fmt::format("{} is not a rank; ranks are 0 to {}", rank, world_size_ - 1));
  }
  return ranks_in_job_[rank];
}

std::shared_ptr<Session> Session::Split(const Call& call, int color, int key) {
  std::unique_ptr<Communicator> group;
  Communicate(call, [&] { group = communicator_->Split(color, key); });
  return group ? Wrap(std::move(group)) : nullptr;
}

std::shared_ptr<Session> Session::Group(const Call& call, std::span<const int> ranks, const std::string& name,
                                        OobAllgather& members) {
  std::unique_ptr<Communicator> group;
  Communicate(call, [&] { group = communicator_->Group(ranks, name, members); });
  return Wrap(std::move(group));
}

std::unique_ptr<TaggedMessages> Session::MakeMailbox(const Call& call) {
  std::unique_ptr<TaggedMessages> made;
  Communicate(call, [&] { made = communicator_->MakeMailbox(); });
  return made;
}

std::shared_ptr<Session> Session::Wrap(std::unique_ptr<Communicator> group) const {
  auto made = std::make_shared<Session>(std::make_unique<recovery::RecoverableCommunicator>(std::move(group)),
                                        options_);
  made->endings_ = endings_;
  if (has_met_) made->CountAsMet();
  return made;
}

std::size_t Session::ElementBytes(const Call& call, int type) const {
  if (type < 0 || type >= kNumRabitTypes) {
    Refuse(call, fmt::format("{} is not an element type; see RabitDataType in rabit/c_api.h", type));
  }
  return SizeOf(static_cast<DataType>(type));
}

void Session::TrackerPrint(const Call& call, const std::string& text) {
  // Not in Communicate: failing to reach the tracker does not end the job, and a rank that is out of the job
  // may still print the reason.
  const CallLock lock(*this, call);
  if (!communicator_) throw EngineError(fmt::format("{}: {}", Where(call), first_error_));
  try {
    communicator_->TrackerPrint(text);
  } catch (const EngineError&) {
    RethrowFor(Where(call));
  }
}

// --- devices -----------------------------------------------------------------------------------------------

device::DeviceCollectives& Session::Devices() {
  if (!devices_) {
    devices_ = std::make_unique<device::DeviceCollectives>(
        *communicator_, options_.device,
        [this](const std::function<void()>& function) { WhenIdle(function); });
  }
  return *devices_;
}

/// Runs the function if no call of this rank is in progress. idle_turns_ changes first and last, so that a
/// call that finds busy_ set can tell whether to wait.
void Session::WhenIdle(const std::function<void()>& function) {
  ++idle_turns_;
  // Releases, too: a call that finds busy_ set by this must also see that idle_turns_ has changed.
  if (!busy_.test_and_set(std::memory_order_acq_rel)) {
    function();
    busy_.clear(std::memory_order_release);
  }
  ++idle_turns_;
}

void Session::CheckDeviceCall(const Call& call, const device::Operation& operation) const {
  const std::string complaint = device::Complaint(operation, rank_, world_size_);
  if (!complaint.empty()) Refuse(call, complaint);
}

void Session::OnDevice(const Call& call, const device::Operation& operation) {
  CheckDeviceCall(call, operation);
  Communicate(call, [&] { Devices().Run(operation); });
}

Session::DeviceMark Session::OnDeviceWithMark(const Call& call, const device::Operation& operation) {
  CheckDeviceCall(call, operation);
  DeviceMark mark;
  Communicate(call, [&] { mark = Devices().RunWithMark(operation); });
  return mark;
}

/// Also works after Finalize, when there are no devices.
bool Session::IsDeviceReached(const DeviceMark& mark) {
  return !devices_ || devices_->IsReached(mark);
}

void Session::DeviceWait(const Call& call, const DeviceMark& mark) {
  Communicate(call, [&] { Devices().Wait(mark); });
}

void Session::DeviceGroupStart(const Call& call) {
  Communicate(call, [&] { Devices().BeginGroup(); });
}

void Session::DeviceGroupEnd(const Call& call) {
  if (!devices_ || !devices_->in_group())
    Refuse(call, "there is no group to end: each GroupEnd needs a GroupStart before it");
  Communicate(call, [&] { Devices().EndGroup(); });
}

void Session::DeviceSynchronize(const Call& call, void* stream) {
  Communicate(call, [&] { Devices().Synchronize(stream); });
}

int Session::SelectDevice(const Call& call) {
  int device = 0;
  Communicate(call, [&] { device = Devices().Select(); });
  return device;
}

std::string Session::DescribeDevices(const Call& call) {
  std::string description;
  Communicate(call, [&] { description = Devices().Describe(); });
  return description;
}

bool Session::IsReplayed() const {
  return communicator_ && first_error_.empty() && communicator_->NextIsReplayed();
}

std::optional<Session::Loaded> Session::LoadCheckPoint(const Call& call, bool want_global, bool want_local) {
  recovery::Models* models = nullptr;
  Communicate(call, [&] { models = &communicator_->LoadCheckPoint(); });
  if (!local_model_use_) local_model_use_ = {call.name, want_local};
  version_ = communicator_->version();
  if (version_ == 0) return std::nullopt;
  const auto local = models->locals.find(rank_);
  if (want_global && !models->has_global()) {
    Refuse(call, fmt::format("version {} was checkpointed without a global model", version()));
  }
  if (want_local && local == models->locals.end()) {
    Refuse(call, fmt::format("version {} was checkpointed without a local model", version()));
  }
  return Loaded{version(), want_global ? &models->Global() : nullptr, want_local ? &local->second : nullptr};
}

/// Refuses a checkpoint with a local model if the first load or checkpoint had none, and the reverse: a
/// restarted process could not load what it needs.
void Session::CheckLocalModel(const Call& call, bool has_local) {
  if (!local_model_use_) local_model_use_ = {call.name, has_local};
  if (local_model_use_->has_local == has_local) return;
  const auto with = [](bool has) { return has ? "with a local model" : "without a local model"; };
  Refuse(call,
         fmt::format("called {}, but {} was called {} before; a restarted process needs the same models in "
                     "all calls of LoadCheckPoint and CheckPoint",
                     with(has_local), local_model_use_->call, with(!has_local)));
}

void Session::CheckPoint(const Call& call, std::optional<std::string> global,
                         std::optional<std::string> local) {
  if (global) CheckLocalModel(call, local.has_value());  // without models, only the version counts
  Communicate(call, [&] { communicator_->CheckPoint(std::move(global), std::move(local)); });
  version_ = communicator_->version();
}

void Session::LazyCheckPoint(const Call& call, recovery::Models::Serializer serialize) {
  CheckLocalModel(call, false);
  Communicate(call, [&] { communicator_->LazyCheckPoint(std::move(serialize)); });
  version_ = communicator_->version();
}

}  // namespace warren::api
