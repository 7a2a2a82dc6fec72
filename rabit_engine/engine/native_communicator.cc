#include "rabit_engine/engine/native_communicator.h"

#include <fmt/format.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <string_view>

#include "rabit_engine/base/error.h"
#include "rabit_engine/base/tls_context.h"
#include "rabit_engine/collective/in_floats.h"
#include "rabit_engine/collective/registry.h"
#include "rabit_engine/host/cores.h"

namespace warren {
namespace {

// --- what ranks tell each other when they meet ---

/// One rank's record: lines of text.
struct Record {
  std::string host_key;
  int cores = 0;          ///< of the machine
  std::string own_cores;  ///< that the rank may run on, by EncodeCores
  std::string offer;      ///< HostSegment::Offer::text
  std::string secret;     ///< rank 0's makes the key of the links
  std::string greeting;
  std::vector<std::string> addresses;
};

std::string Encode(const Record& record) {
  return fmt::format("{}\n{}\n{} {}\n{}\n{}\n{}\n", record.host_key, record.offer, record.cores,
                     record.own_cores, record.secret, record.greeting, fmt::join(record.addresses, "\n"));
}

Record Decode(std::string_view text) {
  Record record;
  const auto next = [&text] {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    return std::string(line);
  };
  record.host_key = next();
  record.offer = next();
  const std::string numbers = next();
  const std::string cores = numbers.substr(0, numbers.find(' '));
  record.secret = next();
  record.greeting = next();
  const auto is_number = [](const std::string& digits) {
    return !digits.empty() && digits.find_first_not_of("0123456789") == std::string::npos;
  };
  if (!is_number(cores) || cores.size() == numbers.size()) {
    throw EngineError("a rank's record is not what this engine writes: do all ranks run the same version?");
  }
  record.cores = std::stoi(cores);
  record.own_cores = numbers.substr(cores.size() + 1);
  while (!text.empty()) {
    if (std::string line = next(); !line.empty()) record.addresses.push_back(std::move(line));
  }
  return record;
}

/// With a token a secret that was overheard while the ranks met is of no use.
tcp::LinkKey KeyOfLinks(const Settings& settings, const std::string& secret) {
  return settings.job_token ? settings.job_token->Derive("links", secret)
                            : wire::Sha256().Update(secret).Finish();
}

std::vector<int> EachAlone(int world_size) {
  std::vector<int> ranks(static_cast<std::size_t>(world_size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

NativeCommunicator::NativeCommunicator(std::unique_ptr<Bootstrap> bootstrap, Listening listening,
                                       const Settings& settings, const std::string& greeting)
    : settings_(settings),
      forced_(settings.algorithm),
      bootstrap_(std::move(bootstrap)),
      rank_(bootstrap_->rank()),
      world_size_(bootstrap_->world_size()),
      is_distributed_(world_size_ > 1 || !settings.tracker_host.empty()),
      layout_(EachAlone(world_size_)),
      all_ranks_(EachAlone(world_size_)) {
  if (world_size_ == 1) {
    greetings_.push_back(greeting);
    return;
  }

  std::unique_ptr<HostSegment::Offer> offer;
  Record own;
  own.host_key = HostKey();
  own.cores = get_nprocs();
  own.own_cores = EncodeCores(OwnCores());
  own.greeting = greeting;
  own.addresses = std::move(listening.addresses);
  if (settings_.shared_memory == SharedMemory::kAuto) {
    offer = std::make_unique<HostSegment::Offer>(settings_.host_group);
    own.offer = offer->text();
  }
  own.secret = wire::ToHex(wire::BytesOf(wire::RandomNonce()));

  std::vector<std::string> offers;
  std::vector<std::vector<std::string>> addresses;
  std::string secret;
  std::vector<std::vector<int>> cores_here;  // for each rank of this host
  std::map<std::string, int> ranks_on;       // machines: containers may share one without sharing memory
  for (const std::string& text : bootstrap_->Allgather(Encode(own))) {
    Record record = Decode(text);
    if (offers.empty()) secret = record.secret;
    if (record.host_key == own.host_key) {
      if (static_cast<int>(offers.size()) < rank_) ++local_rank_;
      cores_here.push_back(DecodeCores(record.own_cores));
    }
    if (++ranks_on[std::string(MachineOf(record.host_key))] > 2 * record.cores) crowded_ = true;
    greetings_.push_back(std::move(record.greeting));
    offers.push_back(std::move(record.offer));
    addresses.push_back(std::move(record.addresses));
  }
  // Whether any rank offers is the same for all ranks: then all take part in finding out who shares.
  const bool any_offer =
      std::any_of(offers.begin(), offers.end(), [](const auto& text) { return !text.empty(); });
  if (any_offer) {
    if (!offer) offer = std::make_unique<HostSegment::Offer>(settings_.host_group);
    std::vector<int> leaders;
    segment_ = offer->Join(*bootstrap_, offers, leaders);
    layout_ = HostLayout(leaders);
  }

  const bool may_spin = static_cast<int>(cores_here.size()) <= CoresOfQuota() && EachHasACore(cores_here) &&
                        ranks_on[std::string(MachineOf(own.host_key))] <= own.cores;
  tcp_ = std::make_unique<TcpTransport>(rank_, world_size_, listening.socket.Release(), std::move(addresses),
                                        KeyOfLinks(settings_, secret),
                                        TcpOptions{.no_delay = settings_.tcp_no_delay,
                                                   .connect_timeout = settings_.connect_timeout,
                                                   .host_timeout = settings_.host_timeout,
                                                   .connect_retry = settings_.connect_retry,
                                                   .answer_timeout = settings_.collective_timeout,
                                                   .tls = TlsFor(settings_, wire::kTlsOfLinks),
                                                   .may_spin = may_spin});
  std::vector<ConnectedPeer> links = bootstrap_->TakeLinks();
  for (ConnectedPeer& peer : links) tcp_->Adopt(peer.rank, std::move(peer.stream));
  watch_ = std::make_unique<CallWatch>(segment_.get(), *tcp_);
  if (segment_) {
    segment_->SetOversubscribed(!may_spin);
    shm_ = std::make_unique<ShmTransport>(*segment_, world_size_);
    mixed_ = std::make_unique<MixedTransport>(*shm_, *tcp_);
    host_ = std::make_unique<HostCollectives>(*segment_);
    host_->SetWaitObserver(watch_.get());
  }
  transport().SetWaitObserver(watch_.get());
  hosts_ = {host_.get(), &layout_};
  world_.emplace(transport(), all_ranks_, rank_, hosts_);
  if (links.empty() && !layout_.is_one_host()) {
    Guard([&] { LinkWithNeighbours(); });
  }
  if (settings_.debug) ReportPlace(may_spin, links.size());
}

/// Where the bootstrap made no links, a rank that dies must be noticed before any algorithm has made one:
/// each rank hears of it from a neighbour, through shared memory or these links.
void NativeCommunicator::LinkWithNeighbours() {
  std::vector<int> neighbours;
  for (const int rank : {(rank_ + world_size_ - 1) % world_size_, (rank_ + 1) % world_size_}) {
    const bool is_new = neighbours.empty() || neighbours.front() != rank;
    if (is_new && !(shm_ && shm_->Reaches(rank))) neighbours.push_back(rank);
  }
  // All ranks have just been heard: who does not come now does not come at all.
  tcp_->ConnectWithin(neighbours, settings_.connect_timeout);
}

/// rabit_debug: one line at the start.
void NativeCommunicator::ReportPlace(bool may_spin, std::size_t links) const {
  const std::string beside =
      segment_ ? fmt::format("shares memory with ranks {}", fmt::join(segment_->ranks(), ", "))
               : std::string("shares memory with nobody");
  fmt::print(stderr, "rabit: rank {} of {} on {}, {} of {} hosts: {}; {} links made; waits {}\n", rank_,
             world_size_, host(), layout_.host_of(rank_) + 1, layout_.num_hosts(), beside, links,
             may_spin ? "spinning at first" : "giving way at once");
}

NativeCommunicator::~NativeCommunicator() = default;

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
  situation.crowded = crowded_;
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
    throw Misuse(fmt::format("rank {}: {} of elements of {} bytes; the largest are {}", rank_,
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

/// All ranks begin the same calls in the same order.
void NativeCommunicator::Begin(CallTag& tag) {
  tag.sequence = ++calls_;
  watch_->Begin(tag);
  Clock::time_point deadline = kNoDeadline;
  if (settings_.collective_timeout.count() > 0) {
    deadline = Clock::now() + settings_.collective_timeout;
  }
  if (host_) host_->set_deadline(deadline);
  world_->Begin(tag, deadline);
}

const collective::Algorithm& NativeCommunicator::BeginBest(Collective collective, std::size_t count,
                                                           const Reduction* reduction, int root) {
  CallTag tag = TagOf(collective, count, reduction, root);
  const std::size_t bytes = reduction == nullptr ? count : count * reduction->element_bytes();
  const collective::Situation situation = Describe(collective, bytes, reduction);
  const collective::Algorithm& algorithm = collective::Choose(situation, forced_);
  tag.algorithm = collective::IdOf(algorithm);
  // What travels: messages are cut into whole elements.
  if (reduction != nullptr && RunsInFloats(algorithm, *reduction)) tag.element_bytes = sizeof(float);
  if (settings_.print_choice || settings_.debug) Report(situation, algorithm);
  Begin(tag);
  return algorithm;
}

/// Two ranks have nothing to combine but their own values, by whatever algorithm.
bool NativeCommunicator::Rounds(const Reduction& reduction) const {
  return reduction.rounds() && world_size_ > 2;
}

bool NativeCommunicator::RunsInFloats(const collective::Algorithm& algorithm,
                                      const Reduction& reduction) const {
  return Rounds(reduction) && !algorithm.combines_at_once;
}

/// RABIT_PRINT_CHOICE: each new choice once, by rank 0.
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
void NativeCommunicator::Guard(Body&& body) {
  try {
    body();
  } catch (const PeerError& error) {
    GiveUp(error.rank() >= 0 ? error.rank() : rank_);
    throw;
  } catch (...) {
    GiveUp(rank_);
    throw;
  }
}

void NativeCommunicator::GiveUp(int lost) noexcept {
  if (NumForks() != num_forks_) return;  // the memory and the peers are the parent's
  if (segment_) segment_->Abort(lost);
  if (tcp_) tcp_->Abort(lost);
}

void NativeCommunicator::LookForLosses() {
  if (world_size_ == 1) return;
  Guard([&] {
    tcp_->TakeEvents();
    tcp_->ThrowIfLost({});
    tcp_->ThrowIfHostIsSilent();
    if (shm_) shm_->ThrowIfLost({});
  });
}

void NativeCommunicator::CheckBuffer(const void* buffer, std::size_t bytes, const char* call) const {
  if (buffer == nullptr && bytes > 0) {
    throw Misuse(fmt::format("rank {}: {} of {} bytes was given a null pointer", rank_, call, bytes));
  }
}

void NativeCommunicator::CheckRoot(int root, const char* call) const {
  if (root < 0 || root >= world_size_) {
    throw Misuse(
        fmt::format("rank {}: {} was given root {}; expected 0 to {}", rank_, call, root, world_size_ - 1));
  }
}

void NativeCommunicator::CheckOffsets(std::span<const std::size_t> offsets, const char* call) const {
  if (offsets.size() != static_cast<std::size_t>(world_size_) + 1 || offsets.front() != 0 ||
      !std::is_sorted(offsets.begin(), offsets.end())) {
    throw Misuse(fmt::format("rank {}: {} needs {} ascending offsets that begin with 0", rank_, call,
                             world_size_ + 1));
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
  Guard([&] {
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
  Guard([&] {
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
  Guard([&] {
    const collective::Algorithm& algorithm =
        BeginBest(Collective::kReduceScatter, offsets.back(), &reduction);
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
  Guard([&] { BeginBest(Collective::kAllgather, offsets.back()).allgather(*world_, buffer, offsets); });
}

void NativeCommunicator::Broadcast(void* buffer, std::size_t bytes, int root) {
  CheckBuffer(buffer, bytes, "broadcast");
  CheckRoot(root, "broadcast");
  if (world_size_ == 1) return;
  Guard([&] {
    BeginBest(Collective::kBroadcast, bytes, nullptr, root).broadcast(*world_, buffer, bytes, root);
  });
}

void NativeCommunicator::Barrier() {
  if (world_size_ == 1) return;
  Guard([&] { BeginBest(Collective::kBarrier, 0).barrier(*world_); });
}

void NativeCommunicator::Exchange(std::span<const Message> messages) {
  std::size_t bytes = 0;
  for (const Message& message : messages) bytes += message.bytes;
  if (bytes == 0) return;
  Guard([&] {
    CallTag tag = TagOf(Collective::kExchange, bytes);
    Begin(tag);
    collective::ExchangeMessages(*world_, messages);
  });
}

void NativeCommunicator::TrackerPrint(const std::string& text) {
  bootstrap_->Print(text);
}

void NativeCommunicator::Finalize() {
  FinishCalls();
  bootstrap_->Shutdown();
}

bool NativeCommunicator::LeaveTogether() {
  return bootstrap_->ShutdownTogether();
}

void NativeCommunicator::FinishCalls() {
  if (world_size_ == 1) return;
  transport().ExpectPeersToLeave();
  Barrier();
  world_.reset();
  watch_.reset();
  host_.reset();
  mixed_.reset();
  shm_.reset();
  tcp_.reset();
  segment_.reset();
}

}  // namespace warren
