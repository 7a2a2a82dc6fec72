#include "rabit_engine/recovery/recoverable_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "rabit_engine/base/copy_bytes.h"
#include "rabit_engine/base/say.h"
#include "rabit_engine/call/slices.h"
#include "rabit_engine/engine/join.h"
#include "rabit_engine/recovery/mock.h"

namespace warren::recovery {
namespace {

using std::chrono::milliseconds;

// The first and the longest pause between two attempts to be linked again: other ranks may not have noticed
// yet that the last attempt failed.
constexpr milliseconds kFirstPause{1};
constexpr milliseconds kMaxPause{200};
// The greeting that a rank announces when it joins: whether it has state that other ranks may need.
constexpr char kWithoutState[] = "new";
constexpr char kWithState[] = "old";

constexpr std::uint64_t kNoLocal = UINT64_MAX;

/// Whether the end of this call proves to a rank that all others have begun it.
Meets MeetsIn(const Operation& operation) {
  switch (operation.kind) {
    case Collective::kAllreduce:
      return operation.count > 0 ? Meets::kAll : Meets::kNobody;
    case Collective::kAllgather: {
      // If ranks know only their own offsets (receive_offsets is empty), they first gather the offsets of all
      // ranks, so that each rank has waited for all others.
      const auto offsets = operation.receive_offsets;
      const bool all_bring = std::adjacent_find(offsets.begin(), offsets.end()) == offsets.end();
      return all_bring ? Meets::kAll : Meets::kNobody;
    }
    case Collective::kBarrier:
      return Meets::kAll;
    default:
      return Meets::kNobody;
  }
}

}  // namespace

// --- joining, and joining again ----------------------------------------------------------------------------

std::unique_ptr<RecoverableCommunicator> RecoverableCommunicator::Join(const Settings& settings) {
  if (!JoinsThroughTracker(settings))
    return std::make_unique<RecoverableCommunicator>(warren::Join(settings));
  return std::unique_ptr<RecoverableCommunicator>(new RecoverableCommunicator(settings));
}

RecoverableCommunicator::RecoverableCommunicator(std::unique_ptr<Communicator> communicator)
    : inner_(std::move(communicator)),
      rank_(inner_->rank()),
      world_size_(inner_->world_size()),
      is_distributed_(inner_->is_distributed()),
      host_(inner_->host()) {
  state_.emplace(rank_, world_size_, replicas_, false);
}

RecoverableCommunicator::RecoverableCommunicator(const Settings& settings)
    : settings_(settings), replicas_{settings.global_replica, settings.local_replica + 1} {
  // If a launcher restarts workers, others may die while this one joins.
  if (settings_.num_attempt > 0 || settings_.max_attempt > 0) {
    JoinUntilAllAreThere(std::nullopt, "this process joins the job");
  } else {
    JoinAs(std::nullopt);
    Meet();
  }
  is_distributed_ = inner_->is_distributed();
  host_ = inner_->host();
}

RecoverableCommunicator::~RecoverableCommunicator() = default;

void RecoverableCommunicator::JoinAs(std::optional<int> rank) {
  const bool is_without_state = !state_ || state_->fresh();
  auto native = JoinThroughTracker(settings_, rank, is_without_state ? kWithoutState : kWithState);
  rank_ = native->rank();
  world_size_ = native->world_size();
  native_ = world_size_ > 1 ? native.get() : nullptr;
  inner_ = std::move(native);
  ++linkings_;
  if (!state_) state_.emplace(rank_, world_size_, replicas_, settings_.bootstrap_cache);
}

/// Called when all ranks have just been linked. Returns when this rank knows the progress of all ranks and
/// has the data that it needs to continue.
void RecoverableCommunicator::Meet() {
  if (native_ == nullptr) return state_->Met();
  const std::vector<std::string>& greetings = native_->greetings();
  const auto says = [&greetings](const char* what) {
    return std::find(greetings.begin(), greetings.end(), what) != greetings.end();
  };
  if (says(kWithState)) {
    std::vector<Report> reports;
    for (const std::string& report :
         AllgatherTexts(*inner_, Encode(state_->MakeReport(says(kWithoutState))))) {
      reports.push_back(Decode(report));
    }
    Follow(MakePlan(reports, replicas_));
  }
  state_->Met();
}

void RecoverableCommunicator::Follow(const Plan& plan) {
  state_->Follow(plan);
  others_have_loaded_ = plan.loaded;
  // All transfers from one rank to another are sent as one message.
  struct Parcel {
    std::vector<const Transfer*> transfers;
    std::size_t bytes = 0;
    Buffer content;
  };
  std::map<std::pair<int, int>, Parcel> parcels;
  for (const Transfer& transfer : plan.transfers) {
    Parcel& parcel = parcels[{transfer.from, transfer.to}];
    parcel.transfers.push_back(&transfer);
    parcel.bytes += transfer.bytes;
  }
  std::vector<PlannedMessage> messages;
  for (auto& [ends, parcel] : parcels) {
    const auto [from, to] = ends;
    PlannedMessage message{.from = from, .to = to, .bytes = parcel.bytes};
    if (from == rank_ || to == rank_) parcel.content = Buffer(parcel.bytes);
    if (from == rank_) {
      std::byte* end = parcel.content.data();
      for (const Transfer* transfer : parcel.transfers) {
        const auto part = state_->Part(*transfer);
        CopyBytes(end, part.data(), part.size());
        end += part.size();
      }
      message.send = parcel.content.data();
    } else if (to == rank_) {
      message.receive = parcel.content.data();
    }
    messages.push_back(message);
  }
  native_->Exchange(messages);
  for (auto& [ends, parcel] : parcels) {
    if (ends.second != rank_) continue;
    const std::byte* begin = parcel.content.data();
    for (const Transfer* transfer : parcel.transfers) {
      state_->Take(*transfer, Buffer(begin, transfer->bytes));
      begin += transfer->bytes;
    }
  }
}

/// Joins the job and meets all ranks. Starts over if a rank or the connection to the tracker is lost in the
/// meantime. A rank that starts over closes its links, which makes all other ranks start over, too.
void RecoverableCommunicator::JoinUntilAllAreThere(std::optional<int> rank, const std::string& why) {
  std::optional<Clock::time_point> begin;
  if (rank) begin = Clock::now();  // else the tracker limits how long workers may be missing
  std::string last_try = why;
  int refusals = 0;
  for (milliseconds pause = kFirstPause;; pause = std::min(kMaxPause, 2 * pause)) {
    native_ = nullptr;
    inner_.reset();
    try {
      // Before the first meeting, the tracker recognizes a process by its task id; a process without a task
      // id requests the rank that it was given before.
      const bool knows_rank = state_ && settings_.task_id == Settings().task_id;
      JoinAs(rank || !knows_rank ? rank : rank_);
      Meet();
      return;
    } catch (const PeerError& error) {
      last_try = error.what();
    } catch (const TrackerLost& error) {
      // A tracker restarted from its saved state answers soon.
      const bool answers =
          error.when() == TrackerLost::When::kTalking && ++refusals < settings_.connect_retry;
      if (!answers && !rank && last_try == why) throw;  // nothing else has gone wrong
      if (!answers) {
        throw TrackerLost(error.when(),
                          fmt::format("{}. It cannot be linked again: {}", last_try, error.what()));
      }
      last_try = error.what();
    }
    if (!begin) begin = Clock::now();
    if (Clock::now() - *begin >= settings_.recovery_timeout) {
      throw TimedOut(fmt::format(
          "{}. Not all ranks were linked again within {} s (rabit_timeout_sec); the last attempt: {}", why,
          settings_.recovery_timeout.count(), last_try));
    }
    std::this_thread::sleep_for(pause);
  }
}

void RecoverableCommunicator::Rejoin(const EngineError& loss) {
  // A timeout is reported immediately, even though the job may continue: if it does not, this process may be
  // killed before it can name the stuck rank.
  const bool late = dynamic_cast<const TimedOut*>(&loss) != nullptr;
  if (settings_.debug || late) Say("rabit: {}; waiting to be linked again", loss.what());
  JoinUntilAllAreThere(rank_, loss.what());
  inner_->SetCallTimeout(call_timeout_);  // for the call that is repeated
}

void RecoverableCommunicator::SetCallTimeout(std::chrono::milliseconds timeout) {
  call_timeout_ = timeout;
  if (inner_) inner_->SetCallTimeout(timeout);  // inner_ is null if the ranks could not be linked again
}

// --- calls -------------------------------------------------------------------------------------------------

bool RecoverableCommunicator::NextIsReplayed() {
  return recovers() && state_->calls().Replay() != nullptr;
}

/// Returns the result of the next call if it is already known, else nullptr. Throws Misuse if its size is not
/// `bytes`.
const Buffer* RecoverableCommunicator::Kept(std::string_view name, std::size_t bytes) {
  const Buffer* result = state_->calls().Replay();
  if (result != nullptr && result->size() != bytes) {
    throw Misuse(fmt::format(
        "{} of {} bytes, where the other ranks had a result of {} bytes before this process was restarted. "
        "To catch up, a program must make the same calls again, from LoadCheckPoint on",
        name, bytes, result->size()));
  }
  return result;
}

bool RecoverableCommunicator::Replays(std::string_view name, void* buffer, std::size_t bytes) {
  const Buffer* result = Kept(name, bytes);
  if (result == nullptr) return false;
  CopyBytes(buffer, result->data(), bytes);
  state_->calls().Step();
  return true;
}

/// Before LoadCheckPoint every call counts as call 0 of version 0, as in rabit, so a mock for a later call
/// does not take effect there.
void RecoverableCommunicator::Mock(std::string_view call) {
  const bool counts = state_->loaded();
  MockBefore(call, settings_, rank_, counts ? version() : 0, counts ? state_->calls().completed() : 0);
}

/// Runs a call, and keeps its result while this communicator recovers(). A reduction that fails leaves its
/// buffer undefined and must be repeated, so its result is stored in another buffer first; the other kinds do
/// not change their input.
void RecoverableCommunicator::Record(const Operation& operation) {
  const std::string_view name = Name(operation.kind);
  Mock(name);
  if (!recovers()) {
    if (others_have_loaded_ && !state_->loaded()) {
      throw Misuse(
          fmt::format("{} before LoadCheckPoint in a restarted process: the other ranks are past it. Call "
                      "LoadCheckPoint first, or set rabit_bootstrap_cache=1",
                      name));
    }
    return inner_->Run(operation);
  }
  if (!IsPlainlyValid(operation)) RequireValid(operation);
  const std::size_t bytes = BytesOf(operation, rank_);
  Buffer result;
  while (!Replays(name, operation.receive, bytes)) {
    if (result.size() != bytes) result = state_->stock().Take(bytes);
    try {
      if (operation.kind == Collective::kAllreduce) {
        inner_->Run(
            Operation::Allreduce(operation.send, result.data(), operation.count, *operation.reduction));
        CopyBytes(operation.receive, result.data(), bytes);
      } else {
        inner_->Run(operation);
        CopyBytes(result.data(), operation.receive, bytes);
      }
      return state_->calls().Append(std::move(result), MeetsIn(operation), state_->stock());
    } catch (const PeerError& error) {
      Rejoin(error);
    }
  }
  state_->stock().Return(std::move(result));
}

void RecoverableCommunicator::Run(const Operation& operation) {
  if (operation.kind == Collective::kAllreduce) [[likely]]
    return Record(operation);
  switch (operation.kind) {
    case Collective::kReduce:
      if (!recovers()) return inner_->Run(operation);
      RequireValid(operation);
      return Record(Operation::Allreduce(operation.receive, operation.count, *operation.reduction));
    case Collective::kReduceScatter:
      if (!recovers()) return inner_->Run(operation);
      RequireValid(operation);
      return Record(
          Operation::Allreduce(operation.receive, operation.receive_offsets.back(), *operation.reduction));
    case Collective::kBroadcast:
    case Collective::kAllgather:
    case Collective::kBarrier:
      return Record(operation);
    default:
      RequireNoRecovery(Name(operation.kind));
      return inner_->Run(operation);
  }
}

/// Checks a call whose result may be replayed. The wrapped communicator checks all other calls.
void RecoverableCommunicator::RequireValid(const Operation& operation) const {
  const std::string complaint = EngineComplaint(operation, rank_, world_size_);
  if (complaint.empty()) return;
  throw Refused(fmt::format("rank {}: {}: {}", rank_, Name(operation.kind), complaint));
}

void RecoverableCommunicator::RequireNoRecovery(std::string_view call) const {
  if (!recovers()) return;
  throw Refused(fmt::format(
      "rank {}: {} after LoadCheckPoint: from then on lost workers are restarted and given the results of allreduce, broadcast, allgather and reduce-scatter, "
      "but of no other call. Omit LoadCheckPoint, or use only these calls",
      rank_, call));
}

std::unique_ptr<Communicator> RecoverableCommunicator::Split(int color, int key) {
  RequireNoRecovery("split");
  return inner_->Split(color, key);
}

std::unique_ptr<Communicator> RecoverableCommunicator::Group(std::span<const int> ranks,
                                                             const std::string& name, OobAllgather& members) {
  RequireNoRecovery("group");
  return inner_->Group(ranks, name, members);
}

std::unique_ptr<TaggedMessages> RecoverableCommunicator::MakeMailbox() {
  RequireNoRecovery("mailbox");
  return inner_->MakeMailbox();
}

void RecoverableCommunicator::RunExternal(const ExternalCollective& call) {
  Mock(call.name);
  for (;;) {
    if (const Buffer* kept = Kept(call.name, call.bytes)) {
      call.restore(kept->data());
      return state_->calls().Step();
    }
    try {
      // The barrier detects ranks that are late, lost or in another call. A rank that has passed it knows
      // that all ranks have begun this call.
      inner_->Barrier();
      call.run(*inner_);
      Buffer result = state_->stock().Take(call.bytes);
      call.save(result.data());
      return state_->calls().Append(std::move(result), Meets::kAll, state_->stock());
    } catch (const PeerError& error) {
      Rejoin(error);
    }
  }
}

void RecoverableCommunicator::GiveUp() noexcept {
  if (inner_) inner_->GiveUp();
}

void RecoverableCommunicator::TrackerPrint(const std::string& text) {
  if (!inner_) throw EngineError("this rank is out of the job");
  inner_->TrackerPrint(text);
}

// --- versions ----------------------------------------------------------------------------------------------

Models& RecoverableCommunicator::LoadCheckPoint() {
  state_->Load();
  return state_->models();
}

void RecoverableCommunicator::CheckPoint(std::optional<std::string> global,
                                         std::optional<std::string> local) {
  Models next;
  next.global = std::move(global);
  if (local) next.locals[rank_] = std::move(*local);
  EndVersion(std::move(next));
}

void RecoverableCommunicator::LazyCheckPoint(Models::Serializer serialize) {
  Models next;
  next.serialize = std::move(serialize);
  EndVersion(std::move(next));
}

void RecoverableCommunicator::EndVersion(Models next) {
  Mock("CheckPoint");
  if (NextIsReplayed()) {
    throw Misuse(
        "CheckPoint where the other ranks had made another call before this process was restarted. "
        "To catch up, a program must make the same calls again, from LoadCheckPoint on");
  }
  const int version = state_->version();
  state_->BeginEnding(std::move(next));
  while (recovers() && state_->version() == version) {
    try {
      Replicate();
      break;
    } catch (const PeerError& error) {
      Rejoin(error);
    }
  }
  if (state_->version() == version) state_->End();
}

/// Sends copies of the local model to the next ranks of the ring. Returns when all ranks have reached
/// CheckPoint and have the copies that they keep.
void RecoverableCommunicator::Replicate() {
  Models& next = state_->next();
  const auto own = next.locals.find(rank_);
  std::vector<std::uint64_t> sizes(static_cast<std::size_t>(world_size_));
  sizes[rank_] = own == next.locals.end() ? kNoLocal : own->second.size();
  inner_->Allgather(sizes.data(), EqualOffsets(world_size_, sizeof(std::uint64_t)));
  const auto without = std::count(sizes.begin(), sizes.end(), kNoLocal);
  if (without == world_size_) return;
  if (without > 0) {
    throw Misuse(fmt::format("CheckPoint with a local model on {} of {} ranks; expected on all or none",
                             world_size_ - without, world_size_));
  }
  std::vector<PlannedMessage> messages;
  for (int owner = 0; owner < world_size_; ++owner) {
    for (int distance = 1; distance < std::min(world_size_, replicas_.locals); ++distance) {
      PlannedMessage message{.from = owner, .to = (owner + distance) % world_size_, .bytes = sizes[owner]};
      if (message.from == rank_) message.send = own->second.data();
      if (message.to == rank_) {
        std::string& copy = next.locals[owner];
        copy.resize(sizes[owner]);
        message.receive = copy.data();
      }
      messages.push_back(message);
    }
  }
  native_->Exchange(messages);
  inner_->Barrier();
}

// --- the end -----------------------------------------------------------------------------------------------

void RecoverableCommunicator::Finalize() {
  Mock("Finalize");
  if (!recovers()) return inner_->Finalize();
  for (;;) {
    std::string loss;
    try {
      native_->FinishCalls();
    } catch (const PeerError& error) {
      loss = error.what();
    }
    if (loss.empty()) {
      // The tracker dismisses no rank until all ranks have reached this point. If a rank is lost before that,
      // the tracker tells the others to join again.
      if (native_->LeaveTogether()) return;
      loss = "a rank was lost at the end of the job";
    }
    JoinUntilAllAreThere(rank_, loss);
  }
}

}  // namespace warren::recovery
