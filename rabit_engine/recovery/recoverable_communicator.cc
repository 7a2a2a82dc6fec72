#include "rabit_engine/recovery/recoverable_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "rabit_engine/base/say.h"
#include "rabit_engine/base/slices.h"
#include "rabit_engine/engine/join.h"
#include "rabit_engine/recovery/mock.h"

namespace warren::recovery {
namespace {

using std::chrono::milliseconds;

// Pauses between two attempts to be linked again: other ranks may not have noticed yet that the last one
// failed.
constexpr milliseconds kFirstPause{1};
constexpr milliseconds kMaxPause{200};
// What a rank announces in the record with which it joins: whether it has state that others may need.
constexpr char kWithoutState[] = "new";
constexpr char kWithState[] = "old";

constexpr std::uint64_t kNoLocal = UINT64_MAX;

void Copy(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
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

/// Called when all ranks have just been linked. No rank continues until all know where the others are and
/// have what they need.
void RecoverableCommunicator::Meet() {
  if (native_ == nullptr) return state_->Met();
  const std::vector<std::string>& greetings = native_->greetings();
  const auto says = [&greetings](const char* what) {
    return std::find(greetings.begin(), greetings.end(), what) != greetings.end();
  };
  if (says(kWithState)) {
    const std::string own = Encode(state_->MakeReport(says(kWithoutState)));
    std::vector<std::uint64_t> sizes(greetings.size());
    sizes[rank_] = own.size();
    inner_->Allgather(sizes.data(), EqualOffsets(world_size_, sizeof(std::uint64_t)));
    std::vector<std::size_t> offsets{0};
    for (const std::uint64_t size : sizes) offsets.push_back(offsets.back() + size);
    std::string all(offsets.back(), '\0');
    Copy(all.data() + offsets[rank_], own.data(), own.size());
    inner_->Allgather(all.data(), offsets);
    std::vector<Report> reports;
    reports.reserve(static_cast<std::size_t>(world_size_));
    for (int rank = 0; rank < world_size_; ++rank) {
      reports.push_back(Decode(std::string_view(all).substr(offsets[rank], sizes[rank])));
    }
    Follow(MakePlan(reports, replicas_));
  }
  state_->Met();
}

void RecoverableCommunicator::Follow(const Plan& plan) {
  state_->Follow(plan);
  others_have_loaded_ = plan.loaded;
  // Everything that goes from one rank to another travels as one message.
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
  std::vector<Message> messages;
  for (auto& [ends, parcel] : parcels) {
    const auto [from, to] = ends;
    Message message{.from = from, .to = to, .bytes = parcel.bytes};
    if (from == rank_ || to == rank_) parcel.content = Buffer(parcel.bytes);
    if (from == rank_) {
      std::byte* end = parcel.content.data();
      for (const Transfer* transfer : parcel.transfers) {
        const auto part = state_->Part(*transfer);
        Copy(end, part.data(), part.size());
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

/// Joins until all ranks have met. Starts over if a rank or the tracker is lost meanwhile: a rank that closes
/// its links makes all others do the same.
void RecoverableCommunicator::JoinUntilAllAreThere(std::optional<int> rank, const std::string& why) {
  std::optional<Clock::time_point> begin;
  if (rank) begin = Clock::now();  // else the tracker limits how long workers may be missing
  std::string last_try = why;
  int refusals = 0;
  for (milliseconds pause = kFirstPause;; pause = std::min(kMaxPause, 2 * pause)) {
    native_ = nullptr;
    inner_.reset();
    try {
      // Before the first meeting, the tracker recognises a process by its task id; without one, the process
      // asks for the rank it was given.
      const bool knows_rank = state_ && settings_.task_id == Settings().task_id;
      JoinAs(rank || !knows_rank ? rank : rank_);
      Meet();
      return;
    } catch (const PeerError& error) {
      last_try = error.what();
    } catch (const TrackerLost& error) {
      // A tracker that was restarted on the same state answers soon.
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
  // A stuck rank is worth a line even if the job continues in the end: the others may be killed before they
  // can report it.
  const bool late = dynamic_cast<const TimedOut*>(&loss) != nullptr;
  if (settings_.debug || late) Say("rabit: {}; waiting to be linked again", loss.what());
  JoinUntilAllAreThere(rank_, loss.what());
  inner_->SetCallTimeout(call_timeout_);  // for the call that is repeated
}

void RecoverableCommunicator::SetCallTimeout(std::chrono::milliseconds timeout) {
  call_timeout_ = timeout;
  if (inner_) inner_->SetCallTimeout(timeout);  // null if the ranks could not be linked again
}

// --- calls -------------------------------------------------------------------------------------------------

bool RecoverableCommunicator::NextIsReplayed() {
  return recovers() && state_->calls().Replay() != nullptr;
}

/// The result of the next call if it is here already, else nullptr.
const Buffer* RecoverableCommunicator::Kept(const char* name, std::size_t bytes) {
  const Buffer* result = state_->calls().Replay();
  if (result != nullptr && result->size() != bytes) {
    throw Misuse(fmt::format(
        "{} of {} bytes, where the other ranks had a result of {} bytes before this process was restarted. "
        "To catch up, a program must make the same calls again, from LoadCheckPoint on",
        name, bytes, result->size()));
  }
  return result;
}

bool RecoverableCommunicator::Replays(const char* name, void* buffer, std::size_t bytes) {
  const Buffer* result = Kept(name, bytes);
  if (result == nullptr) return false;
  Copy(buffer, result->data(), bytes);
  state_->calls().Step();
  return true;
}

/// Before LoadCheckPoint rabit counts neither versions nor calls, so a mock for a later call does not take
/// effect there.
void RecoverableCommunicator::Mock(const char* call) {
  const bool counts = state_->loaded();
  MockBefore(call, settings_, rank_, counts ? version() : 0, counts ? state_->calls().completed() : 0);
}

template <typename Run>
void RecoverableCommunicator::Recorded(const char* name, void* buffer, std::size_t bytes, Input input,
                                       Meets meets, Run&& run) {
  Mock(name);
  if (!recovers()) {
    if (others_have_loaded_ && !state_->loaded()) {
      throw Misuse(fmt::format(
          "{} before LoadCheckPoint in a restarted process: the other ranks are past it. Call LoadCheckPoint first, or set rabit_bootstrap_cache=1",
          name));
    }
    return run(buffer);
  }
  Buffer result;
  while (!Replays(name, buffer, bytes)) {
    if (result.size() != bytes) result = state_->stock().Take(bytes);
    try {
      if (input == Input::kOverwritten) {
        run(result.data());
        Copy(buffer, result.data(), bytes);
      } else {
        run(buffer);
        Copy(result.data(), buffer, bytes);
      }
      return state_->calls().Append(std::move(result), meets, state_->stock());
    } catch (const PeerError& error) {
      Rejoin(error);
    }
  }
  state_->stock().Return(std::move(result));
}

void RecoverableCommunicator::Allreduce(void* buffer, std::size_t count, const Reduction& reduction) {
  Recorded("allreduce", buffer, count * reduction.element_bytes(), Input::kOverwritten,
           count > 0 ? Meets::kAll : Meets::kNobody, [&](void* data) {
             if (data == buffer) return inner_->Allreduce(buffer, count, reduction);
             native_->AllreduceInto(buffer, data, count, reduction);
           });
}

void RecoverableCommunicator::Broadcast(void* buffer, std::size_t bytes, int root) {
  Recorded("broadcast", buffer, bytes, Input::kKept, Meets::kNobody,
           [&](void* data) { inner_->Broadcast(data, bytes, root); });
}

void RecoverableCommunicator::Allgather(void* buffer, std::span<const std::size_t> offsets) {
  const bool all_bring = std::adjacent_find(offsets.begin(), offsets.end()) == offsets.end();
  Recorded("allgather", buffer, offsets.empty() ? 0 : offsets.back(), Input::kKept,
           all_bring ? Meets::kAll : Meets::kNobody, [&](void* data) { inner_->Allgather(data, offsets); });
}

void RecoverableCommunicator::Allgather(void* buffer, std::size_t total, std::size_t begin, std::size_t end) {
  // The slices' offsets are gathered first, which involves every rank.
  Recorded("allgather", buffer, total, Input::kKept, Meets::kAll,
           [&](void* data) { inner_->Allgather(data, total, begin, end); });
}

// The results of these calls differ from rank to rank, but a kept result has to serve all ranks, so the whole
// vector is reduced.
void RecoverableCommunicator::ReduceScatter(void* buffer, std::span<const std::size_t> offsets,
                                            const Reduction& reduction) {
  if (!recovers()) return inner_->ReduceScatter(buffer, offsets, reduction);
  Allreduce(buffer, offsets.empty() ? 0 : offsets.back(), reduction);
}

void RecoverableCommunicator::Reduce(void* buffer, std::size_t count, const Reduction& reduction, int root) {
  if (!recovers()) return inner_->Reduce(buffer, count, reduction, root);
  Allreduce(buffer, count, reduction);
}

void RecoverableCommunicator::Barrier() {
  Recorded("barrier", nullptr, 0, Input::kKept, Meets::kAll, [&](void*) { inner_->Barrier(); });
}

void RecoverableCommunicator::RequireNoRecovery(const char* call) const {
  if (!recovers()) return;
  throw Refused(fmt::format(
      "rank {}: {} after LoadCheckPoint: from then on lost workers are restarted and given the results of allreduce, broadcast, allgather and reduce-scatter, "
      "but of no other call. Omit LoadCheckPoint, or use only these calls",
      rank_, call));
}

void RecoverableCommunicator::Gather(const void* data, std::size_t bytes, void* buffer,
                                     std::span<const std::size_t> offsets, int root) {
  RequireNoRecovery("gather");
  inner_->Gather(data, bytes, buffer, offsets, root);
}

void RecoverableCommunicator::Scatter(const void* buffer, std::span<const std::size_t> offsets, void* data,
                                      std::size_t bytes, int root) {
  RequireNoRecovery("scatter");
  inner_->Scatter(buffer, offsets, data, bytes, root);
}

void RecoverableCommunicator::AllToAll(const void* from, std::span<const std::size_t> sent, void* to,
                                       std::span<const std::size_t> received) {
  RequireNoRecovery("all-to-all");
  inner_->AllToAll(from, sent, to, received);
}

void RecoverableCommunicator::SendReceive(std::span<const Outbound> sends,
                                          std::span<const Inbound> receives) {
  RequireNoRecovery("send or receive");
  inner_->SendReceive(sends, receives);
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
      // The barrier finds ranks that are late, lost or in another call; a rank that has passed it has met all
      // others.
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
  std::vector<Message> messages;
  for (int owner = 0; owner < world_size_; ++owner) {
    for (int distance = 1; distance < std::min(world_size_, replicas_.locals); ++distance) {
      Message message{.from = owner, .to = (owner + distance) % world_size_, .bytes = sizes[owner]};
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
      // The tracker lets no rank go before all have come here; if one was lost, it calls the others back.
      if (native_->LeaveTogether()) return;
      loss = "a rank was lost at the end of the job";
    }
    JoinUntilAllAreThere(rank_, loss);
  }
}

}  // namespace warren::recovery
