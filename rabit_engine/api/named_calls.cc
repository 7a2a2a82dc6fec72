#include "rabit_engine/api/named_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

#include "posix/thread.h"
#include "rabit_engine/api/forced_unwind.h"
#include "rabit_engine/base/copy_bytes.h"
#include "rabit_engine/base/descriptor.h"
#include "rabit_engine/base/error.h"
#include "rabit_engine/base/say.h"
#include "rabit_engine/base/shortage.h"
#include "rabit_engine/call/slices.h"
#include "rabit_engine/reduce/identity.h"
#include "rabit_engine/reduce/reduction.h"

namespace warren::api {
namespace {

using coordinator::RankReport;
using coordinator::Ready;
using coordinator::Request;
using coordinator::Signature;

// The maximum number of names that can have a bit (participant.h). Their bits take at most 512 bytes in each
// cycle.
constexpr std::size_t kCapacity = 4096;
// Approximate limits of the work in one cycle, so that an operation that is submitted later but has a higher
// priority can overtake the rest. Must be the same on all ranks.
constexpr std::uint64_t kCycleBytes = 2 << 20;
constexpr int kCycleBatches = 64;
// The largest packing buffer kept between cycles.
constexpr std::size_t kMostKept = 64 << 20;
// The longest time between cycles while all ranks are idle, unless the `cycle` setting is longer.
constexpr std::chrono::microseconds kIdleCycle{8'000};
// The time between cycles while not all ranks are idle, unless the `cycle` setting is longer or a rank needs
// a cycle sooner.
constexpr std::chrono::microseconds kPause{100};

/// The NamedCalls whose cycle this thread is running, if any.
thread_local const NamedCalls* running_calls = nullptr;

coordinator::Settings SettingsOf(const NamedCallOptions& options) {
  const double patience =
      options.fails_after > 0 ? std::min(options.warns_after, options.fails_after) : options.warns_after;
  return {options.fusion_bytes, static_cast<std::uint64_t>(options.cycle.count()), patience};
}

std::string MessageOf(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an exception from the caller's operation";
  }
}

Reduction ReductionOf(const Signature& what) {
  return Reduction::Typed(static_cast<DataType>(what.type), static_cast<ReduceOp>(what.operation));
}

/// Fills the operation's part of the packing buffer with neutral elements.
void FillWithNeutral(std::byte* part, const Signature& what) {
  FillWithIdentity(part, what.count, static_cast<DataType>(what.type), static_cast<ReduceOp>(what.operation));
}

}  // namespace

class NamedCalls::NamedCall final : public PendingCall {
 public:
  explicit NamedCall(std::shared_ptr<NamedCalls> owner) : owner_(std::move(owner)) {}

  bool HasEnded() override {
    owner_->RequireNoFork(kCall);
    const Lock lock(owner_->mutex_);
    return has_ended_;
  }

  void Wait() override {
    owner_->RequireNoFork(kCall);
    Lock lock(owner_->mutex_);
    owner_->HelpUntil(lock, [this] { return has_ended_; });
    if (error_) std::rethrow_exception(error_);
  }

  void WhenEnded(std::function<void(const std::exception_ptr& error)> function) override {
    owner_->RequireNoFork(kCall);
    {
      const Lock lock(owner_->mutex_);
      if (!has_ended_) {
        when_ended_ = std::move(function);
        return;
      }
    }
    function(error_);  // constant once the call has ended
  }

  /// Called with the owner's mutex held. Returns the callback to call after the mutex is released, or an
  /// empty function.
  std::function<void()> End(const std::exception_ptr& error) {
    error_ = error;
    has_ended_ = true;
    if (!when_ended_) return nullptr;
    return [function = std::exchange(when_ended_, nullptr), error] { function(error); };
  }

 private:
  const std::shared_ptr<NamedCalls> owner_;
  // Guarded by the owner's mutex.
  bool has_ended_ = false;
  std::exception_ptr error_;
  std::function<void(const std::exception_ptr&)> when_ended_;
};

std::shared_ptr<NamedCalls> NamedCalls::Make(const Call& call, Session& parent,
                                             const NamedCallOptions& options) {
  auto made = std::make_shared<NamedCalls>(parent.Split(call, 0, parent.rank()), options);
  parent.BeforeFinalize(made, [calls = made.get()] {
    try {
      calls->Close();
    } catch (const EngineError&) {
      // Finalize communicates with the same ranks and reports the error if it persists.
    }
  });
  made->StartThread();
  return made;
}

NamedCalls::NamedCalls(std::shared_ptr<Session> session, const NamedCallOptions& options)
    : session_(std::move(session)),
      timeline_(session_->options().timeline),
      num_forks_(NumForks()),
      participant_(session_->rank(), SettingsOf(options), kCapacity) {
  session_->StayOffTimeline();
  // Ranks wait as long for a rank that does not start a cycle as for a rank that does not submit a name: with
  // fails_after == 0 forever, even if rabit_timeout=1.
  constexpr double kLongest = 1e9;
  session_->SetTimeout(std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>(
      options.fails_after > 0 ? std::min(options.fails_after, kLongest) : kLongest)));
  if (session_->rank() != 0) return;
  coordinator_ = std::make_unique<coordinator::Coordinator>(
      session_->world_size(), participant_.settings(),
      coordinator::Patience{options.warns_after, options.fails_after},
      [this](int rank) { return session_->RankInJob(kCall, rank); });
  if (options.autotune) tuner_ = std::make_unique<coordinator::Tuner>(participant_.settings());
}

/// Never runs before the thread has left its main loop, because the thread holds a reference. Detaches the
/// thread instead of joining it, because the destructor may run in a forked process, or on the thread itself
/// if the thread drops the last reference.
NamedCalls::~NamedCalls() {
  if (thread_.joinable()) thread_.detach();
}

void NamedCalls::StartThread() {
  const posix::SignalsBlocked blocked;  // also in the new thread: signals are for the program's threads
  has_thread_ = true;                   // until the thread ends, which may happen immediately
  try {
    thread_ = std::thread([self = shared_from_this()] { self->Serve(); });
  } catch (const std::system_error& error) {
    has_thread_ = false;
    ThrowShortage("named operations need a thread of this process", "pthread_create", error.code().value());
  }
}

void NamedCalls::RequireNoFork(const Call& call) const {
  if (NumForks() == num_forks_) return;
  session_->Refuse(call, "called in a forked process; these named operations belong to its parent");
}

/// Called with the mutex held.
void NamedCalls::RequireOpen(const Call& call) const {
  if (!over_.empty()) throw EngineError(fmt::format("{}: {}", session_->Where(call), over_));
  if (closes_) session_->Refuse(call, "these named operations were ended by this rank");
  if (joins_) session_->Refuse(call, "this rank has joined, and can continue only when all ranks have");
}

std::shared_ptr<PendingCall> NamedCalls::Add(const Call& call, Request request, NamedWork work) {
  RequireNoFork(call);
  auto pending = std::make_shared<NamedCall>(shared_from_this());
  const Lock lock(mutex_);
  RequireOpen(call);
  const Clock::time_point now = Clock::now();
  const auto [place, is_new] = waiting_.try_emplace(
      request.name, WaitingCall{std::move(work), pending, call, request.signature, now, now});
  if (!is_new) {
    session_->Refuse(
        call, fmt::format("'{}' is under way already: wait for it before you submit it again", request.name));
  }
  participant_.Add(std::move(request), std::chrono::duration<double>(now - start_).count());
  if (!first_added_) {
    first_added_ = now;
    due_.notify_one();
  }
  return pending;
}

int NamedCalls::Join(const Call& call) {
  RequireNoFork(call);
  Lock lock(mutex_);
  RequireOpen(call);
  if (running_calls == this)
    session_->Refuse(call, "called by an operation's completion function, which must not wait");
  joins_ = true;
  last_joined_.reset();
  participant_.Join();
  HelpUntil(lock, [this] { return last_joined_ || !over_.empty(); });
  if (!last_joined_) throw EngineError(fmt::format("{}: {}", session_->Where(call), over_));
  return *last_joined_;
}

void NamedCalls::Close() {
  if (NumForks() != num_forks_) return;
  Lock lock(mutex_);
  const bool was_over = !over_.empty();
  if (!closes_) {
    closes_ = true;
    participant_.Leave();
  }
  if (running_calls == this) {  // called from a callback
    is_urgent_ = true;
    return;
  }
  HelpUntil(lock, [this] { return !over_.empty(); });
  due_.notify_one();
  changed_.wait(lock, [this] { return !has_thread_; });
  const std::exception_ptr error = was_over ? nullptr : error_;
  lock.unlock();
  // Wait until the thread has dropped its reference, so that the communicator is freed together with the
  // caller's last reference, not later on the thread.
  {
    const std::lock_guard joining(join_mutex_);
    if (thread_.joinable()) thread_.join();
  }
  if (error) std::rethrow_exception(error);
}

// --- cycles ------------------------------------------------------------------------------------------------

/// The thread's main loop: runs cycles while no waiting thread runs them.
void NamedCalls::Serve() {
  posix::WakePromptly();
  Lock lock(mutex_);
  while (over_.empty()) {
    if (num_helpers_ > 0 || is_running_) {
      due_.wait(lock);
    } else if (const Clock::time_point due = Due(); Clock::now() < due) {
      due_.wait_until(lock, due);
    } else {
      runs_in_thread_ = true;
      RunCycle(lock);
      runs_in_thread_ = false;
    }
  }
  has_thread_ = false;
  changed_.notify_all();
}

/// Waits until reached() is true. Meanwhile, the waiting thread runs cycles itself, which saves two thread
/// switches. The first cycle starts immediately.
template <typename Reached>
void NamedCalls::HelpUntil(Lock& lock, Reached&& reached) {
  if (reached()) return;
  is_urgent_ = true;
  ++num_helpers_;
  while (!reached()) {
    if (is_running_) {
      changed_.wait(lock);
    } else if (const Clock::time_point due = Due(); Clock::now() < due) {
      changed_.wait_until(lock, due);
    } else {
      RunCycle(lock);
    }
  }
  if (--num_helpers_ == 0) due_.notify_one();
}

NamedCalls::Clock::time_point NamedCalls::Due() const {
  if (is_urgent_ || !participant_.ready().empty()) return last_cycle_;
  const Clock::time_point due = last_cycle_ + idle_;
  if (!first_added_) return due;
  return std::min(due, *first_added_ + std::chrono::microseconds(participant_.settings().cycle_us));
}

void NamedCalls::RunCycle(Lock& lock) {
  is_running_ = true;
  const NamedCalls* const before = std::exchange(running_calls, this);
  try {
    Cycle(lock);
    if (participant_.left() >= 0 && participant_.ready().empty()) {
      const bool is_own = participant_.left() == session_->RankInJob(kCall, session_->rank());
      End(lock,
          is_own ? "this rank ended the named operations"
                 : fmt::format("rank {} ended the named operations", participant_.left()),
          nullptr);
    }
  } catch (const ForcedUnwind&) {
    // The thread is being terminated: as Python exits, it terminates threads that call into it.
    if (lock.owns_lock()) lock.unlock();
    const std::string why = "the thread that ran the named operations was ended";
    session_->GiveUp(why);
    lock.lock();
    over_ = why;
    is_running_ = false;
    if (runs_in_thread_) has_thread_ = false;
    changed_.notify_all();
    due_.notify_one();
    throw;
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    if (lock.owns_lock()) lock.unlock();
    session_->GiveUp(MessageOf(error));
    lock.lock();
    End(lock, MessageOf(error), error);
  }
  running_calls = before;
  is_running_ = false;
  last_cycle_ = Clock::now();
  const std::chrono::microseconds cycle(participant_.settings().cycle_us);
  idle_ = participant_.all_are_idle() ? std::min(2 * idle_, std::max(kIdleCycle, cycle))
                                      : std::max(cycle, kPause);
  changed_.notify_all();
  if (!over_.empty()) due_.notify_one();  // else the thread sleeps until the last helper leaves
}

void NamedCalls::Cycle(Lock& lock) {
  is_urgent_ = false;
  first_added_.reset();
  const double now = Now();
  std::vector<std::uint64_t> words = participant_.Words(now, coordinator_ && coordinator_->IsDue(now));
  lock.unlock();
  session_->Run(kCall, Operation::Allreduce(words.data(), words.size(),
                                            Reduction::Typed(DataType::kULong, ReduceOp::kBitAnd)));
  lock.lock();
  if (participant_.Agree(words)) Talk(lock);
  std::uint64_t bytes = 0;
  for (int i = 0; i < kCycleBatches && bytes < kCycleBytes; ++i) {
    const std::vector<Ready> batch = participant_.ready().TakeBatch(participant_.settings().fusion_bytes);
    if (batch.empty()) break;
    lock.unlock();
    bytes += Run(batch);
    lock.lock();
  }
  Tune(bytes);
  if (packed_.size() > kMostKept) packed_ = {};
  if (const std::optional<int> last = participant_.TakeLastJoined()) {
    last_joined_ = last;
    joins_ = false;
  }
}

/// All ranks send their reports to rank 0 and receive its answer.
void NamedCalls::Talk(Lock& lock) {
  const std::string message = Encode(participant_.TakeReport(Now()));
  lock.unlock();
  const int size = session_->world_size();
  std::vector<std::uint64_t> lengths(static_cast<std::size_t>(size));
  lengths[session_->rank()] = message.size();
  session_->Run(kCall, Operation::Allgather(lengths.data(), EqualOffsets(size, sizeof(std::uint64_t))));
  std::vector<std::size_t> offsets{0};
  for (const std::uint64_t length : lengths) offsets.push_back(offsets.back() + length);
  std::string all(session_->rank() == 0 ? offsets.back() : 0, '\0');
  session_->Run(kCall, Operation::Gather(message.data(), message.size(), all.data(), offsets, 0));
  std::string answer;
  if (coordinator_) {
    std::vector<RankReport> messages;
    messages.reserve(static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank) {
      messages.push_back(coordinator::DecodeReport(
          std::string_view(all).substr(offsets[rank], offsets[rank + 1] - offsets[rank])));
    }
    const auto known_beside = [this](const Request& request) { return participant_.KnownBeside(request); };
    answer = Encode(coordinator_->Take(messages, known_beside, Now()));
    for (const std::string& warning : coordinator_->TakeWarnings()) {
      Say("rabit: rank {}: {}", session_->RankInJob(kCall, 0), warning);
    }
  }
  std::uint64_t length = answer.size();
  session_->Run(kCall, Operation::Broadcast(&length, sizeof(length), 0));
  answer.resize(length);
  session_->Run(kCall, Operation::Broadcast(answer.data(), length, 0));
  lock.lock();
  participant_.Accept(coordinator::DecodeAnswer(answer));
}

void NamedCalls::Tune(std::uint64_t bytes) {
  if (!tuner_ || tuner_->is_done()) return;
  tuner_->Add(bytes, std::chrono::duration<double>(Clock::now() - last_cycle_).count());
  coordinator_->Propose(tuner_->settings());
  if (!tuner_->is_done()) return;
  Say("rabit: named operations are packed up to {} bytes, in cycles of {} us",
      tuner_->settings().fusion_bytes, tuner_->settings().cycle_us);
}

// --- running the agreed operations ------------------------------------------------------------------------

/// Returns the waiting calls of a batch, in batch order; nullopt for each name that this rank has not
/// submitted, because it has joined. Names stay reserved until the calls end. Throws EngineError if a call's
/// signature differs from the agreed one.
std::vector<std::optional<NamedCalls::WaitingCall>> NamedCalls::Take(const std::vector<Ready>& batch) {
  std::vector<std::optional<WaitingCall>> taken(batch.size());
  const Clock::time_point now = Clock::now();
  const Lock lock(mutex_);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Request& request = *batch[i].request;
    const auto place = waiting_.find(request.name);
    if (place == waiting_.end()) continue;
    if (batch[i].error.empty() && place->second.signature != request.signature) {
      throw EngineError(fmt::format("the ranks agreed on '{}' as {}, but it is {} here", request.name,
                                    Describe(request.signature), Describe(place->second.signature)));
    }
    place->second.agreed = now;
    taken[i] = std::move(place->second);
  }
  return taken;
}

/// Ends the calls of a batch and records them on the timeline.
void NamedCalls::End(const std::vector<Ready>& batch, const std::vector<std::optional<WaitingCall>>& taken,
                     const std::exception_ptr& error) {
  std::vector<std::function<void()>> callbacks;
  {
    const Lock lock(mutex_);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (!taken[i]) continue;
      waiting_.erase(batch[i].request->name);
      auto callback = taken[i]->pending->End(error);
      if (callback) callbacks.push_back(std::move(callback));
    }
  }
  if (timeline_) {
    const Clock::time_point end = Clock::now();
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (taken[i])
        timeline_->Add({session_->name(), batch[i].request->name}, error ? "error" : "run", taken[i]->agreed,
                       end);
    }
  }
  for (const auto& callback : callbacks) callback();
}

/// Ends the NamedCalls: all waiting calls fail with `error` or, if `error` is null, with an error made from
/// `why`. Called with the lock held; returns with the lock held.
void NamedCalls::End(Lock& lock, const std::string& why, const std::exception_ptr& error) {
  over_ = why;
  error_ = error;
  std::unordered_map<std::string, WaitingCall> all = std::exchange(waiting_, {});
  lock.unlock();
  for (auto& [name, waiting] : all) {
    const std::exception_ptr own =
        error ? error
              : std::make_exception_ptr(EngineError(fmt::format("{}: '{}' was not ready everywhere before {}",
                                                                session_->Where(waiting.call), name, why)));
    waiting.agreed = waiting.added;
    auto request = std::make_shared<Request>();
    request->name = name;
    std::vector<std::optional<WaitingCall>> taken;
    taken.emplace_back(std::move(waiting));
    End({{std::move(request), {}}}, taken, own);
  }
  lock.lock();
}

std::uint64_t NamedCalls::Run(const std::vector<Ready>& batch) {
  std::vector<std::optional<WaitingCall>> taken = Take(batch);
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Request& request = *batch[i].request;
    bytes += request.signature.bytes();
    if (timeline_ && taken[i]) {
      timeline_->Add({session_->name(), request.name}, "wait for all ranks", taken[i]->added,
                     taken[i]->agreed, {{"bytes", request.signature.bytes()}});
    }
  }
  if (!batch.front().error.empty()) {
    if (taken.front()) {
      End(batch, taken,
          std::make_exception_ptr(
              Misuse(fmt::format("{}: {}", session_->Where(taken.front()->call), batch.front().error))));
    }
    return 0;
  }
  std::exception_ptr error;
  try {
    if (batch.size() > 1) {
      RunPacked(batch, taken);
    } else if (taken.front()) {
      taken.front()->work.run();
    } else {
      RunWithout(batch.front().request->signature);
    }
  } catch (const ForcedUnwind&) {
    // Take has emptied the calls' entries in waiting_, so nothing else ends these calls. Completion functions
    // are not called.
    const Lock lock(mutex_);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (!taken[i]) continue;
      waiting_.erase(batch[i].request->name);
      taken[i]->pending->End(std::make_exception_ptr(EngineError("the thread that ran this call was ended")));
    }
    changed_.notify_all();
    throw;
  } catch (...) {
    // All operations in the batch get the same error, which names the first operation and counts the others.
    const std::string packed =
        batch.size() > 1 ? fmt::format(" and {} packed with it", batch.size() - 1) : "";
    error = std::make_exception_ptr(EngineError(
        fmt::format("'{}'{}: {}", batch.front().request->name, packed, MessageOf(std::current_exception()))));
  }
  // Release the calls' captures before any thread sees that the calls have ended.
  for (std::optional<WaitingCall>& one : taken) {
    if (one) one->work.run = nullptr;
  }
  End(batch, taken, error);
  if (error) std::rethrow_exception(error);
  return bytes;
}

/// Takes part in an operation with neutral elements: this rank has joined and has not submitted the
/// operation.
void NamedCalls::RunWithout(const Signature& what) {
  if (what.kind == Collective::kBarrier) return session_->Run(kCall, Operation::Barrier());
  packed_.resize(std::max<std::size_t>(packed_.size(), what.bytes()));
  FillWithNeutral(packed_.data(), what);
  ReducePacked(what, what.count);
}

/// Reduces the first `count` elements of the packing buffer.
void NamedCalls::ReducePacked(const Signature& what, std::size_t count) {
  const Reduction reduction = ReductionOf(what);
  Operation operation = Operation::Allreduce(packed_.data(), count, reduction);
  operation.average = what.average;
  session_->Run(kCall, operation);
}

void NamedCalls::RunPacked(const std::vector<Ready>& batch,
                           const std::vector<std::optional<WaitingCall>>& taken) {
  const Signature& first = batch.front().request->signature;
  std::size_t count = 0;
  for (const Ready& ready : batch) count += ready.request->signature.count;
  const std::size_t bytes = count * first.element_bytes;
  packed_.resize(std::max(packed_.size(), bytes));
  const Clock::time_point begin = Clock::now();
  std::byte* place = packed_.data();
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Signature& what = batch[i].request->signature;
    if (taken[i]) {
      CopyBytes(place, taken[i]->work.send, what.bytes());
    } else {
      FillWithNeutral(place, what);
    }
    place += what.bytes();
  }
  const Clock::time_point packed = Clock::now();
  ReducePacked(first, count);
  const Clock::time_point reduced = Clock::now();
  place = packed_.data();
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const std::uint64_t part = batch[i].request->signature.bytes();
    if (taken[i]) CopyBytes(taken[i]->work.receive, place, part);
    place += part;
  }
  if (!timeline_) return;
  const Timeline::Line line{session_->name(), {}};
  timeline_->Add(line, "pack", begin, packed, {{"tensors", batch.size()}, {"bytes", bytes}});
  timeline_->Add(line, "allreduce", packed, reduced, {{"bytes", bytes}});
  timeline_->Add(line, "unpack", reduced, Clock::now());
}

}  // namespace warren::api
