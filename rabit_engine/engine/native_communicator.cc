#include "rabit_engine/engine/native_communicator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <new>
#include <string_view>
#include <utility>

#include "posix/host_name.h"
#include "rabit_engine/base/copy_bytes.h"
#include "rabit_engine/base/error.h"
#include "rabit_engine/base/say.h"
#include "rabit_engine/call/slices.h"
#include "rabit_engine/collective/in_floats.h"
#include "rabit_engine/collective/registry.h"
#include "rabit_engine/engine/mailbox.h"

namespace warren {
NativeCommunicator::NativeCommunicator(std::unique_ptr<Bootstrap> bootstrap, Listening listening,
                                       const Settings& settings, const std::string& greeting)
    : settings_(settings),
      forced_(settings.algorithm, settings.algorithm_name),
      job_(std::make_shared<Job>()),
      bootstrap_(std::move(bootstrap)),
      greetings_{greeting} {
  Membership membership = MeetWorld(*bootstrap_, std::move(listening), settings_, greetings_, *job_);
  std::vector<ConnectedPeer> links;
  if (membership.tcp) {
    links = bootstrap_->TakeLinks();
    for (ConnectedPeer& peer : links) membership.tcp->Adopt(peer.rank, std::move(peer.stream));
  }
  Take(std::move(membership));
  is_distributed_ = world_size_ > 1 || !settings.tracker_host.empty();
  if (world_size_ == 1) {
    BeginReports();
    return;
  }
  if (links.empty() && !layout_.is_one_host()) {
    Guard([&] { LinkWithNeighbours(); });
  }
  job_->SetWorld({.look_for_losses = [this] { Attempt([this] { ThrowIfLost(); }); },
                  .has_ended = [this](int rank) { return tcp_->HasEnded(rank); },
                  .give_up = [this](int rank) { GiveUp(rank, 0); },
                  .print = [this](const std::string& text) { bootstrap_->Print(text); }});
  if (settings_.debug) ReportPlace(links.size());
  BeginReports();
}

NativeCommunicator::NativeCommunicator(const NativeCommunicator& parent, const std::string& name,
                                       Membership membership)
    : settings_(parent.settings_),
      forced_(parent.forced_),
      job_(parent.job_),
      is_distributed_(parent.is_distributed_),
      name_(name),
      reporter_(parent.reporter_) {
  Take(std::move(membership));
  LetRanksLeave();  // ranks may destroy this communicator at any time
}

/// Reports to the tracker named in the environment, unless this process has joined the job of another
/// tracker.
void NativeCommunicator::BeginReports() {
  if (!is_distributed_) return;
  reporting::Reporter* const reporter = reporting::Reporter::OfThisProcess();
  if (reporter == nullptr) return;
  const Settings& own = reporter->settings();
  const bool is_another = !settings_.tracker_host.empty() && (settings_.tracker_host != own.tracker_host ||
                                                              settings_.tracker_port != own.tracker_port);
  if (is_another) return;
  reporter_ = reporter;
  is_followed_ = reporter->Attach(this, rank_, world_size_);
}

void NativeCommunicator::Take(Membership membership) {
  members_ = std::move(membership.ranks);
  rank_ = membership.rank;
  world_size_ = static_cast<int>(members_.size());
  layout_ = std::move(membership.layout);
  for (int rank = 0; rank < rank_; ++rank) {
    if (job_->machines[members_[rank]] == job_->machines[me()]) ++local_rank_;
  }
  if (world_size_ == 1) return;
  segment_ = std::move(membership.segment);
  tcp_ = std::move(membership.tcp);
  watch_ = std::make_unique<CallWatch>(segment_.get(), *tcp_, name_, settings_.stall_warning,
                                       is_world() ? nullptr : job_.get());
  if (segment_) {
    shm_ = std::make_unique<ShmTransport>(*segment_, tcp_->world_size());
    mixed_ = std::make_unique<MixedTransport>(*shm_, *tcp_);
    host_ = std::make_unique<HostCollectives>(*segment_);
    host_->SetWaitObserver(watch_.get());
  }
  transport().SetWaitObserver(watch_.get());
  hosts_ = {host_.get(), &layout_};
  world_.emplace(transport(), members_, rank_, hosts_);
}

/// Links with the previous and the next rank, unless they share memory with this rank. Used if the bootstrap
/// made no links: each rank is then watched by a neighbor, through shared memory or these links, so that its
/// death is noticed even before any algorithm has made links.
void NativeCommunicator::LinkWithNeighbours() {
  std::vector<int> neighbours;
  for (const int rank : {(rank_ + world_size_ - 1) % world_size_, (rank_ + 1) % world_size_}) {
    if (!shm_ || !shm_->Reaches(rank)) neighbours.push_back(rank);
  }
  // All ranks have just sent their addresses, so a rank that does not connect soon never will.
  tcp_->ConnectWithin(neighbours, settings_.connect_timeout);
}

/// For rabit_debug: prints one line with this rank's host, the ranks it shares memory with, and how it waits.
void NativeCommunicator::ReportPlace(std::size_t links) const {
  const std::string beside =
      segment_ ? fmt::format("shares memory with ranks {}", fmt::join(segment_->ranks(), ", "))
               : std::string("shares memory with no other rank");
  Say("rabit: rank {} of {} on {}, {} of {} hosts: {}; {} links made; waits {}", rank_, world_size_, host(),
      layout_.host_of(rank_) + 1, layout_.num_hosts(), beside, links,
      job_->may_spin ? "spinning first" : "yielding at once");
}

NativeCommunicator::~NativeCommunicator() {
  if (is_world()) LeaveJob();
}

/// From now on, other communicators cannot use the world's links and memory.
void NativeCommunicator::LeaveJob() {
  StopCounting();
  job_->SetWorld({});
  job_->SetSegment(nullptr);
}

// --- communicators split off from this one ---

namespace {
/// The first byte of the text that a rank sends before it joins a group. After kOffers the offer follows,
/// after kCannotOffer the reason why the rank cannot make one.
constexpr char kOffers = '+';
constexpr char kCannotOffer = '-';
}  // namespace

void NativeCommunicator::AllgatherForSplit(void* buffer, std::span<const std::size_t> offsets) {
  if (world_size_ == 1) return;
  const Operation operation = Operation::Allgather(buffer, offsets);
  Counted(offsets.back(), [&] { RunInPlace(BeginBest(Collective::kSplit, operation), operation); });
}

/// Returns the ranks of this rank's group, in the group's order; empty if `color` is negative.
std::vector<int> NativeCommunicator::AgreeOnGroup(int color, int key) {
  struct Wish {
    std::int32_t color;
    std::int32_t key;
  };
  std::vector<Wish> wishes(static_cast<std::size_t>(world_size_));
  wishes[rank_] = {color, key};
  AllgatherForSplit(wishes.data(), EqualOffsets(world_size_, sizeof(Wish)));
  std::vector<int> group;
  for (int rank = 0; rank < world_size_; ++rank) {
    if (color >= 0 && wishes[rank].color == color) group.push_back(rank);
  }
  std::ranges::stable_sort(group, {}, [&](int rank) { return wishes[rank].key; });
  return group;
}

std::unique_ptr<Communicator> NativeCommunicator::Split(int color, int key) {
  job_->BeginSharing();
  const std::string name = fmt::format("{}/{}.{}", name_, ++splits_, color);
  const std::vector<int> group = AgreeOnGroup(color, key);
  return MakeGroup(group, name, [&](const std::string& text) {
    const std::vector<std::string> all = AllgatherTexts(
        rank_, world_size_, text,
        [&](void* buffer, std::span<const std::size_t> offsets) { AllgatherForSplit(buffer, offsets); });
    std::vector<std::string> of_group;
    of_group.reserve(group.size());
    for (const int rank : group) of_group.push_back(all[rank]);
    return of_group;
  });
}

std::unique_ptr<Communicator> NativeCommunicator::Group(std::span<const int> ranks, const std::string& name,
                                                        OobAllgather& members) {
  job_->BeginSharing();
  return MakeGroup(ranks, name, [&](const std::string& text) {
    try {
      return members.Allgather(text);
    } catch (const EngineError& error) {
      // Only the rendezvous has failed: this communicator has not been used and stays usable.
      throw Refused(fmt::format("rank {}: communicator '{}' cannot be made: {}", me(), name, error.what()));
    }
  });
}

/// If one rank of a group fails, all ranks of the group receive the reason before any of them continues, and
/// none receives a communicator. A rank that cannot make an offer sends the reason instead; the offers of the
/// others are then not used.
std::unique_ptr<Communicator> NativeCommunicator::MakeGroup(std::span<const int> group,
                                                            const std::string& name, const Tell& tell) {
  std::string failure;
  const auto attempt = [&failure](auto&& step) {
    try {
      step();
    } catch (const std::exception& error) {
      failure = error.what();
    }
  };
  std::optional<SubgroupOffer> offer;
  attempt([&] {
    if (group.empty()) return;
    std::vector<int> members;
    members.reserve(group.size());
    for (const int rank : group) members.push_back(members_[rank]);
    const auto index = std::find(group.begin(), group.end(), rank_) - group.begin();
    offer.emplace(*job_, std::move(members), static_cast<int>(index), settings_);
  });
  std::vector<std::string> offers = tell(offer ? kOffers + offer->text() : kCannotOffer + failure);
  std::vector<std::string> failures;
  for (std::string& told : offers) {
    const bool has_offer = told.starts_with(kOffers);
    if (!told.empty()) told.erase(0, 1);
    failures.push_back(has_offer ? "" : told.empty() ? "no reason given" : told);
  }
  const bool all_offer = std::all_of(failures.begin(), failures.end(), std::mem_fn(&std::string::empty));
  std::unique_ptr<Communicator> made;
  if (offer && all_offer) {
    attempt([&] { made.reset(new NativeCommunicator(*this, name, offer->Join(offers, name, settings_))); });
  }
  // Split exchanges these strings with ranks outside this group, too, so the exchange takes place even after
  // a failure.
  const std::vector<std::string> joined = tell(failure);
  if (all_offer) failures = joined;
  for (std::size_t i = 0; i < failures.size(); ++i) {
    if (failures[i].empty()) continue;
    throw Refused(fmt::format("rank {} could not take part in the new communicator: {}", members_[group[i]],
                              failures[i]));
  }
  return made;
}

/// The mailbox's links belong to a communicator that nothing else uses. All of them are made now, because
/// later a peer might not be exchanging messages and so would not make its end of the link.
std::unique_ptr<TaggedMessages> NativeCommunicator::MakeMailbox() {
  std::unique_ptr<Communicator> made = Split(0, rank_);
  auto& own = static_cast<NativeCommunicator&>(*made);
  if (world_size_ == 1)
    return std::make_unique<Mailbox>(std::move(made), nullptr, settings_.collective_timeout);
  std::vector<int> others;
  for (const int member : members_) {
    if (member != me()) others.push_back(member);
  }
  own.Guard([&] {
    own.transport().Connect(others);
    own.transport().AllowInterrupts();
  });
  own.transport().SetWaitObserver(nullptr);  // the mailbox's waits belong to no call
  return std::make_unique<Mailbox>(std::move(made), &own.transport(), settings_.collective_timeout);
}

void NativeCommunicator::LetRanksLeave() {
  if (world_size_ > 1) transport().ExpectPeersToLeave();
}

std::string NativeCommunicator::host() const {
  return posix::HostName();
}

Transport& NativeCommunicator::transport() {
  if (mixed_) return *mixed_;
  return *tcp_;
}

// --- beginning and ending a call ---

collective::Situation NativeCommunicator::Describe(const Operation& operation, std::size_t bytes) const {
  collective::Situation situation;
  situation.collective = operation.kind;
  situation.bytes = bytes;
  situation.ranks = world_size_;
  situation.one_host = layout_.is_one_host();
  situation.levels = layout_.has_levels();
  situation.consecutive = layout_.hosts_are_consecutive();
  situation.hosts = layout_.num_hosts();
  situation.crowded = job_->crowded;
  situation.levels_may_reduce = layout_.keeps_order() || !settings_.reproducible;
  if (operation.reduction != nullptr) {
    situation.order_matters = operation.reduction->order_matters();
    situation.rounds = Rounds(*operation.reduction);
    situation.fits = HostCollectives::Fits(operation.reduction->element_bytes(), world_size_);
  }
  return situation;
}

/// Whether `rank` receives nothing from other ranks in this call.
static bool OnlyGives(const CallTag& tag, int rank) {
  switch (tag.collective) {
    case Collective::kBroadcast:
    case Collective::kScatter:
      return tag.root == rank;
    case Collective::kReduce:
    case Collective::kGather:
      return tag.root != rank;
    default:
      return false;
  }
}

/// All ranks begin the same calls in the same order, so their sequence numbers agree.
void NativeCommunicator::Begin(CallTag& tag, std::string_view algorithm) {
  tag.sequence = ++calls_;
  if (reporter_ != nullptr) [[unlikely]]
    BeginCounting(tag, algorithm);
  watch_->Begin(tag, OnlyGives(tag, rank_));
  const Clock::time_point deadline = Deadline();
  if (host_) host_->set_deadline(deadline);
  world_->Begin(tag, deadline);
}

Clock::time_point NativeCommunicator::Deadline() const {
  return patience_.count() > 0 ? Clock::now() + patience_ : kNoDeadline;
}

void NativeCommunicator::SetCollectiveTimeout(std::chrono::seconds timeout) {
  settings_.collective_timeout = timeout;
  SetCallTimeout({});
}

void NativeCommunicator::SetCallTimeout(std::chrono::milliseconds timeout) {
  patience_ = timeout.count() > 0 ? timeout : settings_.collective_timeout;
  if (tcp_) tcp_->set_answer_timeout(patience_);
}

const collective::Algorithm& NativeCommunicator::BeginBest(Collective called, const Operation& operation) {
  CallTag tag = TagOf(operation);
  const collective::Situation situation = Describe(operation, tag.count * tag.element_bytes);
  const collective::Algorithm& algorithm = collective::Choose(situation, forced_);
  tag.algorithm = collective::IdOf(algorithm);
  tag.collective = called;
  if (called == Collective::kSplit) tag.root = 0;  // instead of a digest of the slice lengths
  // The tag holds the size of elements as they are sent, since messages are divided at element boundaries.
  if (operation.reduction != nullptr && RunsInFloats(algorithm, *operation.reduction)) {
    tag.element_bytes = sizeof(float);
  }
  if (settings_.print_choice || settings_.debug) Report(situation, algorithm);
  Begin(tag, algorithm.name);
  return algorithm;
}

/// With two ranks every algorithm combines the same two values once, so there is no intermediate rounding.
bool NativeCommunicator::Rounds(const Reduction& reduction) const {
  return reduction.rounds() && world_size_ > 2;
}

bool NativeCommunicator::RunsInFloats(const collective::Algorithm& algorithm,
                                      const Reduction& reduction) const {
  return Rounds(reduction) && !algorithm.combines_at_once;
}

/// For WARREN_PRINT_CHOICE and rabit_debug: rank 0 prints each new choice once.
void NativeCommunicator::Report(const collective::Situation& situation,
                                const collective::Algorithm& algorithm) {
  if (rank_ != 0) return;
  const std::size_t size_class = situation.bytes == 0 ? 0 : std::bit_ceil(situation.bytes);
  std::string line =
      fmt::format("rabit: {} of up to {} bytes, {} ranks on {} hosts: {}", Name(situation.collective),
                  size_class, situation.ranks, layout_.num_hosts(), algorithm.name);
  if (reported_.insert(line).second) std::fprintf(stderr, "%s\n", line.c_str());
}

template <typename Body>
void NativeCommunicator::Counted(std::size_t bytes, Body&& body) {
  Guard(std::forward<Body>(body));
  if (reporter_ != nullptr) [[unlikely]]
    EndCounting(bytes);
}

void NativeCommunicator::BeginCounting(const CallTag& tag, std::string_view algorithm) {
  if (!reporter_->IsOfThisProcess()) return;
  counted_ = {tag.collective, algorithm, Clock::now()};
  if (is_followed_) reporter_->statistics().Enter(tag, counted_.since);
}

void NativeCommunicator::EndCounting(std::size_t bytes) {
  if (!reporter_->IsOfThisProcess()) return;
  const Clock::time_point now = Clock::now();
  if (is_followed_) reporter_->statistics().Leave(now);
  reporter_->statistics().Count(counted_.collective, counted_.algorithm, bytes, now - counted_.since);
}

void NativeCommunicator::StopCounting() {
  if (reporter_ != nullptr && is_followed_) reporter_->Detach(this);
  reporter_ = nullptr;
}

template <typename Body>
void NativeCommunicator::Guard(Body&& body) {
  if (is_world() && job_->is_shared()) {
    const std::unique_lock turn = job_->TurnOfWorld();
    return Attempt([&] {
      job_->ThrowIfLost();
      body();
    });
  }
  Attempt(std::forward<Body>(body));
}

template <typename Body>
void NativeCommunicator::Attempt(Body&& body) {
  try {
    body();
  } catch (const PeerError& error) {
    GiveUp(error.rank() >= 0 ? error.rank() : me(), error.shortage());
    is_world() ? job_->NoteLoss(error) : job_->ReportLoss(error);
    throw;
  } catch (const LocalShortage& error) {
    GiveUp(me(), error.error());
    throw;
  } catch (const std::bad_alloc&) {
    GiveUp(me(), ENOMEM);
    throw;
  } catch (...) {
    GiveUp(me(), 0);
    throw;
  }
}

void NativeCommunicator::GiveUp(int lost, int shortage) noexcept {
  if (NumForks() != num_forks_) return;  // the memory and the links belong to the parent process
  has_given_up_ = true;
  if (reporter_ != nullptr && is_followed_) reporter_->statistics().Leave(Clock::now());
  if (segment_) segment_->Abort(lost, shortage);
  if (tcp_) tcp_->Abort(lost, shortage);
}

void NativeCommunicator::LookForLosses() {
  if (world_size_ == 1) return;
  Guard([&] { ThrowIfLost(); });
}

void NativeCommunicator::ThrowIfLost() {
  tcp_->TakeEvents();
  tcp_->ThrowIfLost({});
  tcp_->ThrowIfHostIsSilent();
  if (shm_) shm_->ThrowIfLost({});
}

// --- the collectives ---

void NativeCommunicator::RequireValid(const Operation& operation) const {
  const std::string complaint = EngineComplaint(operation, rank_, world_size_);
  if (complaint.empty()) return;
  throw Refused(fmt::format("rank {}: {}: {}", me(), Name(operation.kind), complaint));
}

void NativeCommunicator::Run(const Operation& operation) {
  if (!IsPlainlyValid(operation)) {
    RequireValid(operation);
    if (operation.kind == Collective::kSendReceive) return RunMessages(operation);
    if (operation.without_offsets) {
      const std::vector<std::size_t> offsets =
          GatherOffsets(*this, {operation.count, operation.begin, operation.end});
      return Run(Operation::Allgather(operation.receive, offsets));
    }
  }
  if (world_size_ == 1) return RunAlone(operation);
  Counted(BytesOf(operation, rank_), [&] { RunBegun(BeginBest(operation.kind, operation), operation); });
}

/// Serves a call in a communicator of one rank, by copying its data to the result.
void NativeCommunicator::RunAlone(const Operation& operation) const {
  if (operation.kind != Collective::kAllreduce) return CopyOwnSlice(operation, rank_);
  if (operation.send == operation.receive) return;
  CopyBytes(operation.receive, operation.send, BytesOf(operation, rank_));
}

void NativeCommunicator::RunBegun(const collective::Algorithm& algorithm, const Operation& operation) {
  if (operation.reduction != nullptr && RunsInFloats(algorithm, *operation.reduction)) {
    return collective::RunInFloats(operation, rank_,
                                   [&](const Operation& on_floats) { RunInPlace(algorithm, on_floats); });
  }
  if (operation.kind == Collective::kAllreduce && operation.send != operation.receive) {
    if (algorithm.allreduce_into != nullptr) {
      return algorithm.allreduce_into(*world_, operation.send, operation.receive, operation.count,
                                      *operation.reduction);
    }
    CopyBytes(operation.receive, operation.send, BytesOf(operation, rank_));
  }
  // All-to-all algorithms copy this rank's own slice themselves.
  if (!Reduces(operation.kind) && operation.kind != Collective::kAllToAll) CopyOwnSlice(operation, rank_);
  RunInPlace(algorithm, operation);
}

/// Runs the algorithm's function for this kind of operation.
void NativeCommunicator::RunInPlace(const collective::Algorithm& algorithm, const Operation& operation) {
  switch (operation.kind) {
    case Collective::kAllreduce:
      return algorithm.allreduce(*world_, operation.receive, operation.count, *operation.reduction);
    case Collective::kBroadcast:
      return algorithm.broadcast(*world_, operation.receive, operation.count, operation.root);
    case Collective::kAllgather:
      return algorithm.allgather(*world_, operation.receive, operation.receive_offsets);
    case Collective::kReduceScatter:
      return algorithm.reduce_scatter(*world_, operation.receive, operation.receive_offsets,
                                      *operation.reduction);
    case Collective::kReduce:
      return algorithm.reduce(*world_, operation.receive, operation.count, *operation.reduction,
                              operation.root);
    case Collective::kBarrier:
      return algorithm.barrier(*world_);
    case Collective::kGather:
      return algorithm.gather(*world_, operation.send, operation.count, operation.receive,
                              operation.receive_offsets, operation.root);
    case Collective::kScatter:
      return algorithm.scatter(*world_, operation.send, operation.send_offsets, operation.receive,
                               operation.count, operation.root);
    case Collective::kAllToAll:
      return algorithm.all_to_all(*world_, operation.send, operation.send_offsets, operation.receive,
                                  operation.receive_offsets);
    case Collective::kExchange:
    case Collective::kSendReceive:
    case Collective::kSplit:
      throw Misuse(fmt::format("no algorithm serves {}", Name(operation.kind)));
  }
}

/// Other ranks need not make this call, so it does not advance the sequence number of calls.
void NativeCommunicator::RunMessages(const Operation& operation) {
  std::vector<Send> outgoing;
  std::vector<Receive> incoming;
  std::vector<int> peers;
  for (const Inbound& in : operation.receives) {
    if (in.from == rank_) continue;
    incoming.push_back({in.from, in.data, in.bytes, {}});
    peers.push_back(in.from);
  }
  for (const Outbound& out : operation.sends) {
    if (out.to == rank_) continue;
    outgoing.push_back({out.to, out.data, out.bytes});
    peers.push_back(out.to);
  }
  CopyOwnSlice(operation, rank_);
  if (peers.empty()) return;
  Counted(BytesOf(operation, rank_), [&] {
    CallTag tag;
    tag.sequence = calls_;
    tag.collective = Collective::kSendReceive;
    tag.before = watch_->digest();
    watch_->BeginMessages();
    if (reporter_ != nullptr) [[unlikely]]
      counted_ = {tag.collective, {}, Clock::now()};
    world_->Begin(tag, Deadline());
    world_->Connect(peers);
    world_->Exchange(outgoing, incoming);
  });
}

void NativeCommunicator::Exchange(std::span<const PlannedMessage> messages) {
  std::size_t bytes = 0;
  for (const PlannedMessage& message : messages) bytes += message.bytes;
  if (bytes == 0) return;
  Counted(bytes, [&] {
    CallTag tag;
    tag.collective = Collective::kExchange;
    tag.count = bytes;
    Begin(tag);
    collective::ExchangeMessages(*world_, messages);
  });
}

void NativeCommunicator::TrackerPrint(const std::string& text) {
  is_world() ? bootstrap_->Print(text) : job_->Print(text);
}

void NativeCommunicator::Finalize() {
  if (!is_world()) return;
  FinishCalls();
  bootstrap_->Shutdown();
}

bool NativeCommunicator::LeaveTogether() {
  return bootstrap_->ShutdownTogether();
}

void NativeCommunicator::FinishCalls() {
  reporting::Reporter* const reporter = is_followed_ ? reporter_ : nullptr;
  StopCounting();  // the barrier is the engine's own
  if (world_size_ > 1) {
    transport().ExpectPeersToLeave();
    Barrier();
  }
  if (reporter != nullptr) reporter->AwaitSent();  // while the tracker is still listening
  if (world_size_ == 1) return;
  LeaveJob();
  world_.reset();
  watch_.reset();
  host_.reset();
  mixed_.reset();
  shm_.reset();
  tcp_.reset();
  segment_.reset();
}

}  // namespace warren
