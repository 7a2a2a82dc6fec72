#include "rabit_engine/engine/native_communicator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <new>
#include <string_view>
#include <utility>

#include "rabit_engine/base/error.h"
#include "rabit_engine/base/say.h"
#include "rabit_engine/base/slices.h"
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
  LetRanksLeave();  // a rank that frees it leaves at once and is not lost
}

/// Reports to the tracker of this process's environment, unless it has joined another tracker's job.
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

/// If the bootstrap made no links, a rank that dies must be noticed before any algorithm has made one: each
/// rank hears of it from a neighbour, through shared memory or these links.
void NativeCommunicator::LinkWithNeighbours() {
  std::vector<int> neighbours;
  for (const int rank : {(rank_ + world_size_ - 1) % world_size_, (rank_ + 1) % world_size_}) {
    const bool is_new = neighbours.empty() || neighbours.front() != rank;
    if (is_new && !(shm_ && shm_->Reaches(rank))) neighbours.push_back(rank);
  }
  // All ranks have just been heard from, so a rank that does not connect now never will.
  tcp_->ConnectWithin(neighbours, settings_.connect_timeout);
}

/// With rabit_debug, prints one line at the start.
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

/// After this no other communicator may use this one's links or memory.
void NativeCommunicator::LeaveJob() {
  StopCounting();
  job_->SetWorld({});
  job_->SetSegment(nullptr);
}

// --- communicators split off from this one ---

namespace {
/// The first byte of a rank's text before it joins a group: either an offer follows, or the reason why the
/// rank has none.
constexpr char kOffers = '+';
constexpr char kCannotOffer = '-';
}  // namespace

void NativeCommunicator::AllgatherForSplit(void* buffer, std::span<const std::size_t> offsets) {
  if (world_size_ == 1) return;
  Run(offsets.back(), [&] {
    BeginBest(Collective::kSplit, Collective::kAllgather, offsets.back()).allgather(*world_, buffer, offsets);
  });
}

std::vector<std::string> NativeCommunicator::AllgatherTexts(const std::string& own) {
  const auto size = static_cast<std::size_t>(world_size_);
  std::vector<std::uint64_t> lengths(size);
  lengths[rank_] = own.size();
  AllgatherForSplit(lengths.data(), EqualOffsets(world_size_, sizeof(std::uint64_t)));
  std::vector<std::size_t> offsets{0};
  for (const std::uint64_t length : lengths) offsets.push_back(offsets.back() + length);
  std::string all(offsets.back(), '\0');
  std::copy(own.begin(), own.end(), all.begin() + static_cast<std::ptrdiff_t>(offsets[rank_]));
  if (!all.empty()) AllgatherForSplit(all.data(), offsets);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < size; ++i) texts.push_back(all.substr(offsets[i], lengths[i]));
  return texts;
}

/// The ranks of this rank's group, in the group's order; empty if `color` is negative.
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
  std::stable_sort(group.begin(), group.end(), [&](int a, int b) { return wishes[a].key < wishes[b].key; });
  return group;
}

std::unique_ptr<Communicator> NativeCommunicator::Split(int color, int key) {
  job_->BeginSharing();
  const std::string name = fmt::format("{}/{}.{}", name_, ++splits_, color);
  const std::vector<int> group = AgreeOnGroup(color, key);
  return MakeGroup(group, name, [&](const std::string& text) {
    const std::vector<std::string> all = AllgatherTexts(text);
    std::vector<std::string> of_group;
    of_group.reserve(group.size());
    for (const int rank : group) of_group.push_back(all[rank]);
    return of_group;
  });
}

std::unique_ptr<Communicator> NativeCommunicator::Group(std::span<const int> ranks, const std::string& name,
                                                        OobAllgather& members) {
  job_->BeginSharing();
  return MakeGroup(ranks, name, [&](const std::string& text) { return members.Allgather(text); });
}

/// If one rank of a group fails, all ranks learn the reason before any continues, and none gets a
/// communicator. A rank without an offer sends its reason instead; then no rank reads the other offers.
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
    offer.emplace(*job_, std::move(members), static_cast<int>(index));
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
  // Ranks outside this group may take part in this exchange, too.
  const std::vector<std::string> joined = tell(failure);
  if (all_offer) failures = joined;
  for (std::size_t i = 0; i < failures.size(); ++i) {
    if (failures[i].empty()) continue;
    throw Refused(fmt::format("rank {} could not take part in the new communicator: {}", members_[group[i]],
                              failures[i]));
  }
  return made;
}

/// Its links belong to a communicator that nothing else uses. They are all made now: a rank that made one
/// later might find its peer not taking part in messages at that time.
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
  own.transport().SetWaitObserver(nullptr);  // no call is in progress there
  return std::make_unique<Mailbox>(std::move(made), &own.transport(), settings_.collective_timeout);
}

void NativeCommunicator::LetRanksLeave() {
  if (world_size_ > 1) transport().ExpectPeersToLeave();
}

std::string NativeCommunicator::host() const {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

Transport& NativeCommunicator::transport() {
  if (mixed_) return *mixed_;
  return *tcp_;
}

// --- beginning and ending a call ---

collective::Situation NativeCommunicator::Describe(Collective collective, std::size_t bytes,
                                                   const Reduction* reduction) const {
  collective::Situation situation;
  situation.collective = collective;
  situation.bytes = bytes;
  situation.ranks = world_size_;
  situation.one_host = layout_.is_one_host();
  situation.levels = layout_.has_levels();
  situation.consecutive = layout_.hosts_are_consecutive();
  situation.hosts = layout_.num_hosts();
  situation.crowded = job_->crowded;
  situation.levels_may_reduce = layout_.keeps_order() || !settings_.reproducible;
  if (reduction != nullptr) {
    situation.order_matters = reduction->order_matters();
    situation.rounds = Rounds(*reduction);
    situation.fits = HostCollectives::Fits(reduction->element_bytes(), world_size_);
  }
  return situation;
}

CallTag NativeCommunicator::TagOf(Collective collective, std::size_t count, const Reduction* reduction,
                                  int root) {
  CallTag tag;
  tag.collective = collective;
  tag.count = count;
  tag.root = root;
  if (reduction == nullptr) return tag;
  if (reduction->element_bytes() > std::numeric_limits<std::uint32_t>::max()) {
    throw Misuse(fmt::format("rank {}: {} of elements of {} bytes; the largest are {}", me(),
                             Name(collective), reduction->element_bytes(),
                             std::numeric_limits<std::uint32_t>::max()));
  }
  tag.element_bytes = static_cast<std::uint32_t>(reduction->element_bytes());
  if (!reduction->is_custom()) {
    tag.type = static_cast<std::uint8_t>(reduction->type());
    tag.operation = static_cast<std::uint8_t>(reduction->operation());
  }
  return tag;
}

/// Whether `rank` takes nothing from other ranks in this call.
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

/// All ranks begin the same calls in the same order.
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

const collective::Algorithm& NativeCommunicator::BeginBest(Collective collective, std::size_t count,
                                                           const Reduction* reduction, int root) {
  return BeginBest(collective, collective, count, reduction, root);
}

const collective::Algorithm& NativeCommunicator::BeginBest(Collective called, Collective served_by,
                                                           std::size_t count, const Reduction* reduction,
                                                           int root) {
  CallTag tag = TagOf(called, count, reduction, root);
  const std::size_t bytes = reduction == nullptr ? count : count * reduction->element_bytes();
  const collective::Situation situation = Describe(served_by, bytes, reduction);
  const collective::Algorithm& algorithm = collective::Choose(situation, forced_);
  tag.algorithm = collective::IdOf(algorithm);
  // The size in which elements travel: messages are cut into whole elements.
  if (reduction != nullptr && RunsInFloats(algorithm, *reduction)) tag.element_bytes = sizeof(float);
  if (settings_.print_choice || settings_.debug) Report(situation, algorithm);
  Begin(tag, algorithm.name);
  return algorithm;
}

/// With two ranks every algorithm combines the same two values once.
bool NativeCommunicator::Rounds(const Reduction& reduction) const {
  return reduction.rounds() && world_size_ > 2;
}

bool NativeCommunicator::RunsInFloats(const collective::Algorithm& algorithm,
                                      const Reduction& reduction) const {
  return Rounds(reduction) && !algorithm.combines_at_once;
}

/// WARREN_PRINT_CHOICE: rank 0 prints each new choice once.
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
void NativeCommunicator::Run(std::size_t bytes, Body&& body) {
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
  if (NumForks() != num_forks_) return;  // the memory and the peers belong to the parent
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

namespace {

/// Distinguishes slices of different lengths that add up to the same total; 0 if all are equal.
int DigestOf(std::span<const std::size_t> offsets) {
  std::uint64_t digest = 0;
  bool all_equal = true;
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    const std::size_t length = offsets[i] - offsets[i - 1];
    all_equal = all_equal && length == offsets[1];
    digest = (digest ^ length) * 0x9e3779b97f4a7c15;
    digest ^= digest >> 32;
  }
  return all_equal ? 0 : static_cast<int>(digest & 0x7fffffff);
}

}  // namespace

void NativeCommunicator::CheckBuffer(const void* buffer, std::size_t bytes, const char* call) const {
  if (buffer == nullptr && bytes > 0) {
    throw Misuse(fmt::format("rank {}: {} of {} bytes was given a null pointer", me(), call, bytes));
  }
}

void NativeCommunicator::CheckRoot(int root, const char* call) const {
  if (root < 0 || root >= world_size_) {
    throw Misuse(
        fmt::format("rank {}: {} was given root {}; expected 0 to {}", me(), call, root, world_size_ - 1));
  }
}

void NativeCommunicator::CheckOffsets(std::span<const std::size_t> offsets, const char* call) const {
  if (offsets.size() != static_cast<std::size_t>(world_size_) + 1 || offsets.front() != 0 ||
      !std::is_sorted(offsets.begin(), offsets.end())) {
    throw Misuse(
        fmt::format("rank {}: {} needs {} ascending offsets that begin with 0", me(), call, world_size_ + 1));
  }
}

// --- the collectives ---

void NativeCommunicator::Allreduce(void* buffer, std::size_t count, const Reduction& reduction) {
  AllreduceInto(buffer, buffer, count, reduction);
}

void NativeCommunicator::AllreduceInto(const void* input, void* buffer, std::size_t count,
                                       const Reduction& reduction) {
  const std::size_t bytes = count * reduction.element_bytes();
  CheckBuffer(buffer, bytes, "allreduce");
  const auto copy = [&] {
    if (input != buffer && bytes > 0) std::memcpy(buffer, input, bytes);
  };
  if (world_size_ == 1) return copy();
  Run(bytes, [&] {
    const collective::Algorithm& algorithm = BeginBest(Collective::kAllreduce, count, &reduction);
    if (RunsInFloats(algorithm, reduction)) {
      return collective::ReduceInFloats(input, buffer, count, reduction,
                                        [&](void* floats, std::size_t length, const Reduction& on_floats) {
                                          algorithm.allreduce(*world_, floats, length, on_floats);
                                        });
    }
    if (input != buffer && algorithm.allreduce_into != nullptr) {
      return algorithm.allreduce_into(*world_, input, buffer, count, reduction);
    }
    copy();
    algorithm.allreduce(*world_, buffer, count, reduction);
  });
}

void NativeCommunicator::Reduce(void* buffer, std::size_t count, const Reduction& reduction, int root) {
  CheckBuffer(buffer, count * reduction.element_bytes(), "reduce");
  CheckRoot(root, "reduce");
  if (world_size_ == 1) return;
  Run(count * reduction.element_bytes(), [&] {
    const collective::Algorithm& algorithm = BeginBest(Collective::kReduce, count, &reduction, root);
    if (!RunsInFloats(algorithm, reduction)) {
      return algorithm.reduce(*world_, buffer, count, reduction, root);
    }
    collective::ReduceInFloats(buffer, rank_ == root ? buffer : nullptr, count, reduction,
                               [&](void* floats, std::size_t length, const Reduction& on_floats) {
                                 algorithm.reduce(*world_, floats, length, on_floats, root);
                               });
  });
}

void NativeCommunicator::ReduceScatter(void* buffer, std::span<const std::size_t> offsets,
                                       const Reduction& reduction) {
  CheckOffsets(offsets, "reduce-scatter");
  CheckBuffer(buffer, offsets.back() * reduction.element_bytes(), "reduce-scatter");
  if (world_size_ == 1) return;
  Run(offsets.back() * reduction.element_bytes(), [&] {
    const collective::Algorithm& algorithm =
        BeginBest(Collective::kReduceScatter, offsets.back(), &reduction, DigestOf(offsets));
    if (!RunsInFloats(algorithm, reduction)) {
      return algorithm.reduce_scatter(*world_, buffer, offsets, reduction);
    }
    collective::ReduceScatterInFloats(
        buffer, offsets, reduction, rank_,
        [&](void* floats, std::span<const std::size_t> places, const Reduction& on_floats) {
          algorithm.reduce_scatter(*world_, floats, places, on_floats);
        });
  });
}

void NativeCommunicator::Allgather(void* buffer, std::span<const std::size_t> offsets) {
  CheckOffsets(offsets, "allgather");
  CheckBuffer(buffer, offsets.back(), "allgather");
  if (world_size_ == 1) return;
  Run(offsets.back(), [&] {
    BeginBest(Collective::kAllgather, offsets.back(), nullptr, DigestOf(offsets))
        .allgather(*world_, buffer, offsets);
  });
}

void NativeCommunicator::Broadcast(void* buffer, std::size_t bytes, int root) {
  CheckBuffer(buffer, bytes, "broadcast");
  CheckRoot(root, "broadcast");
  if (world_size_ == 1) return;
  Run(bytes, [&] {
    BeginBest(Collective::kBroadcast, bytes, nullptr, root).broadcast(*world_, buffer, bytes, root);
  });
}

void NativeCommunicator::Barrier() {
  if (world_size_ == 1) return;
  Run(0, [&] { BeginBest(Collective::kBarrier, 0).barrier(*world_); });
}

namespace {

void CopyOwn(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0 && to != from) std::memmove(to, from, bytes);
}

}  // namespace

void NativeCommunicator::Gather(const void* data, std::size_t bytes, void* buffer,
                                std::span<const std::size_t> offsets, int root) {
  CheckRoot(root, "gather");
  CheckBuffer(data, bytes, "gather");
  if (rank_ == root) {
    CheckOffsets(offsets, "gather");
    CheckBuffer(buffer, offsets.back(), "gather");
    CopyOwn(static_cast<std::byte*>(buffer) + offsets[rank_], data, bytes);
  }
  if (world_size_ == 1) return;
  Run(rank_ == root ? offsets.back() : bytes, [&] {
    BeginBest(Collective::kGather, 0, nullptr, root).gather(*world_, data, bytes, buffer, offsets, root);
  });
}

void NativeCommunicator::Scatter(const void* buffer, std::span<const std::size_t> offsets, void* data,
                                 std::size_t bytes, int root) {
  CheckRoot(root, "scatter");
  CheckBuffer(data, bytes, "scatter");
  if (rank_ == root) {
    CheckOffsets(offsets, "scatter");
    CheckBuffer(buffer, offsets.back(), "scatter");
    CopyOwn(data, static_cast<const std::byte*>(buffer) + offsets[rank_], bytes);
  }
  if (world_size_ == 1) return;
  Run(rank_ == root ? offsets.back() : bytes, [&] {
    BeginBest(Collective::kScatter, 0, nullptr, root).scatter(*world_, buffer, offsets, data, bytes, root);
  });
}

void NativeCommunicator::AllToAll(const void* from, std::span<const std::size_t> sent, void* to,
                                  std::span<const std::size_t> received) {
  CheckOffsets(sent, "all-to-all");
  CheckOffsets(received, "all-to-all");
  CheckBuffer(from, sent.back(), "all-to-all");
  CheckBuffer(to, received.back(), "all-to-all");
  const std::size_t own = sent[rank_ + 1] - sent[rank_];
  if (world_size_ == 1) return CopyOwn(to, from, own);
  Run(sent.back(),
      [&] { BeginBest(Collective::kAllToAll, 0).all_to_all(*world_, from, sent, to, received); });
}

void NativeCommunicator::SendReceive(std::span<const Outbound> sends, std::span<const Inbound> receives) {
  const auto check = [&](int peer, const void* data, std::size_t bytes, const char* what) {
    if (peer < 0 || peer >= world_size_) {
      throw Refused(fmt::format("rank {}: {} rank {}; expected 0 to {}", me(), what, peer, world_size_ - 1));
    }
    if (data == nullptr && bytes > 0) {
      throw Refused(fmt::format("rank {}: {} rank {} was given a null pointer", me(), what, peer));
    }
  };
  std::vector<Send> outgoing;
  std::vector<Receive> incoming;
  std::vector<const Outbound*> to_itself;
  std::vector<const Inbound*> from_itself;
  std::vector<int> peers;
  for (const Outbound& out : sends) {
    check(out.to, out.data, out.bytes, "send to");
    if (out.to == rank_) {
      to_itself.push_back(&out);
    } else {
      outgoing.push_back({out.to, out.data, out.bytes});
      peers.push_back(out.to);
    }
  }
  for (const Inbound& in : receives) {
    check(in.from, in.data, in.bytes, "receive from");
    if (in.from == rank_) {
      from_itself.push_back(&in);
    } else {
      incoming.push_back({in.from, in.data, in.bytes, {}});
      peers.push_back(in.from);
    }
  }
  const bool match =
      std::equal(to_itself.begin(), to_itself.end(), from_itself.begin(), from_itself.end(),
                 [](const Outbound* out, const Inbound* in) { return out->bytes == in->bytes; });
  if (!match) {
    throw Refused(fmt::format(
        "rank {}: the messages that it sends to itself and receives from itself in one call differ", me()));
  }
  for (std::size_t i = 0; i < to_itself.size(); ++i) {
    CopyOwn(from_itself[i]->data, to_itself[i]->data, to_itself[i]->bytes);
  }
  if (peers.empty()) return;
  std::size_t bytes = 0;
  for (const Send& send : outgoing) bytes += send.bytes;
  for (const Receive& receive : incoming) bytes += receive.bytes;
  Run(bytes, [&] {
    // Other ranks do not make this call, so it does not advance the sequence of calls.
    CallTag tag;
    tag.sequence = calls_;
    tag.collective = Collective::kSendReceive;
    tag.before = watch_->digest();
    watch_->BeginMessages();
    if (reporter_ != nullptr) [[unlikely]]
      counted_ = {tag.collective, {}, Clock::now()};
    world_->Begin(tag, Deadline());
    std::sort(peers.begin(), peers.end());
    peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
    world_->Connect(peers);
    world_->Exchange(outgoing, incoming);
  });
}

void NativeCommunicator::Exchange(std::span<const Message> messages) {
  std::size_t bytes = 0;
  for (const Message& message : messages) bytes += message.bytes;
  if (bytes == 0) return;
  Run(bytes, [&] {
    CallTag tag = TagOf(Collective::kExchange, bytes);
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
  StopCounting();  // the following calls are not made by the program
  if (world_size_ > 1) {
    transport().ExpectPeersToLeave();
    Barrier();
  }
  if (reporter != nullptr) reporter->AwaitSent();  // while the tracker still listens
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
