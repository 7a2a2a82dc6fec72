#include "bench/simulation/world.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "rabit_engine/call/call_tag.h"
#include "rabit_engine/reduce/kernels.h"

namespace warren::simulation {
namespace {

// The limits of TcpLink: the maximum number of bytes per call, the size below which a read also takes the
// bytes that follow, and the maximum number of bytes that this read takes.
constexpr std::size_t kMaxCallBytes = std::size_t{1} << 20;
constexpr std::size_t kDirectBytes = 2048;
constexpr std::size_t kStashBytes = 8192;
constexpr std::size_t kHeadBytes = sizeof(CallTag);
constexpr std::size_t kStackBytes = std::size_t{128} << 10;

/// The world that this thread runs.
thread_local World* current = nullptr;

Time Cost(double ps_per_byte, std::size_t bytes) {
  return static_cast<Time>(std::llround(ps_per_byte * static_cast<double>(bytes)));
}

}  // namespace

struct World::Event {
  Time time;
  std::uint64_t sequence;
  SimulatedLink* link;
  std::size_t bytes;
  int rank;
  Kind kind;
  friend bool operator>(const Event& a, const Event& b) {
    return a.time != b.time ? a.time > b.time : a.sequence > b.sequence;
  }
};

struct World::Host {
  Time out_free = 0;  ///< time at which the interface will have sent everything so far
  Time in_free = 0;
  bool crowded = false;
  int free_cores = 0;
  std::deque<Rank*> queue;  ///< ranks that take turns, if crowded
};

class World::Rank final : public Transport {
 public:
  enum class State : std::uint8_t { kRunning, kWaiting, kResuming, kQueued, kSleeping, kWaking };

  Rank(World& world, int rank, int host, std::size_t stack)
      : world_(world), rank_(rank), host_(host), stack_(stack) {}

  int rank() const override { return rank_; }
  int world_size() const override { return world_.size(); }
  void Connect(std::span<const int> peers) override;
  Link& To(int peer) override;
  void Wait(std::span<const Interest> interests, Clock::time_point deadline) override;
  using Transport::Abort;
  void Abort(int /*lost_rank*/, int /*shortage*/) noexcept override {}

  void Begin(const std::function<void(Transport&)>& body) {
    fiber_ = std::make_unique<Fiber>(world_.stacks_.At(stack_), world_.stacks_.bytes_each(),
                                     [this, &body] { body(*this); });
  }
  bool AnyReady() const;
  bool Sleeps(Time now) const {
    return state_ == State::kSleeping ||
           (state_ == State::kWaiting && now - waits_since_ > world_.model_.patience);
  }
  /// Suspends the fiber until all events up to this rank's clock have been simulated.
  void Sync();
  SimulatedLink& LinkTo(int peer);

  World& world_;
  const int rank_;
  const int host_;
  const std::size_t stack_;
  std::unique_ptr<Fiber> fiber_;
  Time clock_ = 0;
  State state_ = State::kResuming;
  std::span<const Interest> interests_;
  Time waits_since_ = 0;
  std::unordered_map<int, std::unique_ptr<SimulatedLink>> links_;
  Traffic traffic_;
};

/// One rank's end of a link: the bytes it has sent, and the bytes that have arrived for it.
class World::SimulatedLink final : public Link {
 public:
  SimulatedLink(Rank& self, Rank& peer)
      : self_(self), peer_(peer), path_(self.world_.PathBetween(self, peer)) {}

  std::size_t TrySend(const void* data, std::size_t bytes) override {
    return TrySendWithHead(nullptr, 0, data, bytes);
  }
  std::size_t TrySendWithHead(const void* head, std::size_t head_bytes, const void* data,
                              std::size_t bytes) override;
  std::size_t TryReceive(void* data, std::size_t bytes) override;

  std::size_t room() const { return path_.buffer_bytes - static_cast<std::size_t>(sent_ - twin().consumed_); }
  /// Whether a third of the buffer is free, which is Linux's condition for a writable socket.
  bool CanSend() const { return room() >= path_.buffer_bytes / 3; }
  bool CanReceive() const { return arrived_ > consumed_ || stashed_ > 0; }
  SimulatedLink& twin() const {
    if (twin_ == nullptr) {
      twin_ = &peer_.LinkTo(self_.rank_);
      twin_->twin_ = const_cast<SimulatedLink*>(this);
    }
    return *twin_;
  }

  Rank& self_;
  Rank& peer_;
  const Path& path_;
  mutable SimulatedLink* twin_ = nullptr;
  std::uint64_t sent_ = 0;
  std::uint64_t arrived_ = 0;
  std::uint64_t consumed_ = 0;  ///< bytes read from the socket
  std::uint64_t stashed_ = 0;   ///< bytes consumed, but not yet delivered
  // The stream positions of the tags that are still to be delivered. Each of these tags equals head_, the tag
  // of the sender's latest call.
  std::deque<std::uint64_t> heads_;
  CallTag head_;

 private:
  void Deliver(void* data, std::size_t bytes);
};

// ------------------------------------------------------------------------------------------------ links

std::size_t World::SimulatedLink::TrySendWithHead(const void* head, std::size_t head_bytes,
                                                  const void* /*data*/, std::size_t bytes) {
  if (head_bytes + bytes == 0) return 0;
  self_.Sync();
  const std::size_t wanted = head_bytes + std::min(bytes, kMaxCallBytes);
  const std::size_t taken = std::min(wanted, room());
  if (taken < std::max<std::size_t>(1, head_bytes)) {
    self_.clock_ += path_.miss;
    return 0;
  }
  if (head_bytes > 0) {
    twin().heads_.push_back(sent_);
    std::memcpy(&twin().head_, head, kHeadBytes);
  }
  sent_ += taken;
  ++self_.traffic_.messages;
  self_.traffic_.bytes += taken;
  const Time begin = self_.clock_ + path_.send_overhead;
  const std::size_t segment = self_.world_.model_.segment_bytes;
  for (std::size_t done = 0; done < taken;) {
    const std::size_t piece = std::min(segment, taken - done);
    done += piece;
    self_.world_.Leave(*this, begin + Cost(path_.send_ps_per_byte, done), piece);
  }
  self_.clock_ = begin + Cost(path_.send_ps_per_byte, taken);
  if (self_.host_ == peer_.host_ && peer_.Sleeps(self_.clock_)) self_.clock_ += self_.world_.model_.wake;
  return taken;
}

std::size_t World::SimulatedLink::TryReceive(void* data, std::size_t bytes) {
  if (bytes == 0) return 0;
  if (stashed_ == 0) {
    self_.Sync();
    const auto available = static_cast<std::size_t>(arrived_ - consumed_);
    if (available == 0) {
      self_.clock_ += path_.miss;
      return 0;
    }
    const std::size_t most = bytes < kDirectBytes ? kStashBytes : std::min(bytes, kMaxCallBytes);
    const std::size_t taken = std::min(available, most);
    self_.clock_ += path_.receive_overhead + Cost(path_.receive_ps_per_byte, taken);
    const bool was_full = !twin().CanSend();
    consumed_ += taken;
    stashed_ = taken;
    if (was_full && twin().CanSend()) {
      self_.world_.Push(self_.clock_ + path_.latency, Kind::kRoom, peer_.rank_, &twin());
    }
  }
  const std::size_t given = std::min<std::size_t>(bytes, stashed_);
  Deliver(data, given);
  stashed_ -= given;
  return given;
}

/// Copies the parts of tags that lie in the first `bytes` stashed bytes to `data`, which represents these
/// bytes.
void World::SimulatedLink::Deliver(void* data, std::size_t bytes) {
  const std::uint64_t begin = consumed_ - stashed_;
  while (!heads_.empty() && heads_.front() < begin + bytes) {
    const std::uint64_t head = heads_.front();
    const std::uint64_t from = std::max(head, begin);
    const std::uint64_t to = std::min(head + kHeadBytes, begin + bytes);
    std::memcpy(static_cast<std::byte*>(data) + (from - begin),
                reinterpret_cast<const std::byte*>(&head_) + (from - head), to - from);
    if (to < head + kHeadBytes) return;
    heads_.pop_front();
  }
}

// ------------------------------------------------------------------------------------------------ ranks

void World::Rank::Connect(std::span<const int> peers) {
  for (const int peer : peers) LinkTo(peer);
}

Link& World::Rank::To(int peer) {
  return LinkTo(peer);
}

World::SimulatedLink& World::Rank::LinkTo(int peer) {
  auto& link = links_[peer];
  if (!link) {
    if (peer < 0 || peer >= world_.size() || peer == rank_)
      throw std::logic_error("a link to an impossible peer");
    link = std::make_unique<SimulatedLink>(*this, *world_.ranks_[peer]);
  }
  return *link;
}

bool World::Rank::AnyReady() const {
  return std::any_of(interests_.begin(), interests_.end(), [this](const Interest& interest) {
    const SimulatedLink& link = *links_.at(interest.peer);
    return (interest.to_send && link.CanSend()) || (interest.to_receive && link.CanReceive());
  });
}

void World::Rank::Sync() {
  if (world_.events_.empty() || world_.events_.top().time > clock_) return;
  world_.Push(clock_, Kind::kResume, rank_);
  fiber_->Suspend();
}

void World::Rank::Wait(std::span<const Interest> interests, Clock::time_point /*deadline*/) {
  Sync();
  interests_ = interests;
  if (AnyReady()) {
    clock_ += world_.model_.poll;
    interests_ = {};
    return;
  }
  waits_since_ = clock_;
  Host& host = world_.hosts_[host_];
  if (host.crowded) {
    state_ = State::kQueued;
    host.queue.push_back(this);
    world_.GiveUpCore(host, clock_);
  } else {
    state_ = State::kWaiting;
  }
  fiber_->Suspend();
  interests_ = {};
}

// ------------------------------------------------------------------------------------------------ world

World::World(const Model& model, int ranks, int ranks_of_host)
    : model_(model), stacks_(static_cast<std::size_t>(ranks), kStackBytes) {
  hosts_.resize(static_cast<std::size_t>((ranks + ranks_of_host - 1) / ranks_of_host));
  for (int rank = 0; rank < ranks; ++rank) {
    ranks_.push_back(
        std::make_unique<Rank>(*this, rank, rank / ranks_of_host, static_cast<std::size_t>(rank)));
  }
  for (Host& host : hosts_) {
    host.crowded = ranks_of_host > model_.cores_of_host;
    host.free_cores = model_.cores_of_host;
  }
}

World::~World() = default;

Time World::ended() const {
  Time latest = 0;
  for (const auto& rank : ranks_) latest = std::max(latest, rank->clock_);
  return latest;
}

const Traffic& World::traffic(int rank) const {
  return ranks_[static_cast<std::size_t>(rank)]->traffic_;
}

void World::Work(Time duration) {
  current->running_->clock_ += duration;
}

void World::Combine(std::size_t bytes) {
  Work(Cost(current->model_.combine_ps_per_byte, bytes));
}

const Path& World::PathBetween(const Rank& one, const Rank& other) const {
  return one.host_ == other.host_ ? model_.inside : model_.between;
}

void World::Run(const std::function<void(Transport& transport)>& body) {
  current = this;
  for (const auto& rank : ranks_) {
    rank->Begin(body);
    Host& host = hosts_[static_cast<std::size_t>(rank->host_)];
    if (host.crowded) {
      rank->state_ = Rank::State::kQueued;
      host.queue.push_back(rank.get());
    } else {
      Push(0, Kind::kResume, rank->rank_);
    }
  }
  for (Host& host : hosts_) {
    if (host.crowded) Dispatch(host, 0);
  }
  while (!events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    if (sequence_ > most_events_) throw TooLong();
    now_ = event.time;
    Handle(event);
  }
  for (const auto& rank : ranks_) {
    if (!rank->fiber_->finished()) {
      throw std::logic_error("rank " + std::to_string(rank->rank_) +
                             " waits for a message that no rank sends");
    }
  }
}

void World::Push(Time time, Kind kind, int rank, SimulatedLink* link, std::size_t bytes) {
  events_.push({time, sequence_++, link, bytes, rank, kind});
}

void World::Handle(const Event& event) {
  Rank& rank = *ranks_[static_cast<std::size_t>(event.rank)];
  switch (event.kind) {
    case Kind::kResume:
      return Resume(rank, event.time);
    case Kind::kTurn:
      return TakeTurn(rank);
    case Kind::kDepart: {
      Host& host = hosts_[static_cast<std::size_t>(event.link->self_.host_)];
      const Path& path = event.link->path_;
      const Time begin = std::max(now_, host.out_free);
      host.out_free = begin + std::max(path.gap, Cost(path.gap_ps_per_byte, event.bytes));
      return Push(begin + path.latency, Kind::kReachHost, event.rank, event.link, event.bytes);
    }
    case Kind::kReachHost: {
      // The first bit has arrived; the others arrive at the rate of the receiver's interface.
      Host& host = hosts_[static_cast<std::size_t>(rank.host_)];
      const Path& path = event.link->path_;
      host.in_free = std::max(now_, host.in_free) + Cost(path.gap_ps_per_byte, event.bytes);
      return Push(host.in_free, Kind::kArrive, event.rank, event.link, event.bytes);
    }
    case Kind::kArrive:
      event.link->twin().arrived_ += event.bytes;
      return Notify(rank, event.link->self_.rank_, /*room=*/false);
    case Kind::kRoom:
      return Notify(rank, event.link->peer_.rank_, /*room=*/true);
    case Kind::kWoken: {
      Host& host = hosts_[static_cast<std::size_t>(rank.host_)];
      rank.state_ = Rank::State::kQueued;
      rank.waits_since_ = now_;
      host.queue.push_front(&rank);
      return Dispatch(host, now_);
    }
  }
}

/// Starts the transmission of a piece that is in the kernel.
void World::Leave(SimulatedLink& link, Time ready, std::size_t bytes) {
  const bool same_host = link.self_.host_ == link.peer_.host_;
  Push(same_host ? ready + link.path_.latency : ready, same_host ? Kind::kArrive : Kind::kDepart,
       link.peer_.rank_, &link, bytes);
}

/// Handles data, or a notice of free buffer space, that has arrived from `peer`: resumes or wakes the rank if
/// it is waiting for it.
void World::Notify(Rank& rank, int peer, bool room) {
  const bool concerns =
      std::any_of(rank.interests_.begin(), rank.interests_.end(), [&](const Interest& interest) {
        return interest.peer == peer && (room ? interest.to_send : interest.to_receive);
      });
  if (!concerns) return;
  if (rank.state_ == Rank::State::kWaiting) {
    const bool slept = now_ - rank.waits_since_ > model_.patience;
    rank.state_ = Rank::State::kResuming;
    Push(now_ + model_.poll + (slept ? model_.wake_up : 0), Kind::kResume, rank.rank_);
  } else if (rank.state_ == Rank::State::kSleeping) {
    rank.state_ = Rank::State::kWaking;
    Push(now_ + model_.wake_up, Kind::kWoken, rank.rank_);
  }
}

void World::Resume(Rank& rank, Time time) {
  rank.clock_ = time;
  rank.state_ = Rank::State::kRunning;
  running_ = &rank;
  rank.fiber_->Resume();
  if (!rank.fiber_->finished()) return;
  Host& host = hosts_[static_cast<std::size_t>(rank.host_)];
  // The core becomes free at the time on the rank's clock, not now.
  if (host.crowded) Push(rank.clock_, Kind::kTurn, rank.rank_);
}

void World::GiveUpCore(Host& host, Time time) {
  ++host.free_cores;
  Dispatch(host, time);
}

/// Assigns free cores to the next ranks in the queue.
void World::Dispatch(Host& host, Time time) {
  while (host.free_cores > 0 && !host.queue.empty()) {
    Rank& next = *host.queue.front();
    host.queue.pop_front();
    --host.free_cores;
    Push(time + model_.turn, Kind::kTurn, next.rank_);
  }
}

/// Makes a rank that has been given a core resume, queue again or sleep.
void World::TakeTurn(Rank& rank) {
  Host& host = hosts_[static_cast<std::size_t>(rank.host_)];
  if (rank.fiber_->finished()) return GiveUpCore(host, now_);
  const bool begins = rank.interests_.empty();
  if (begins || rank.AnyReady()) {
    rank.state_ = Rank::State::kResuming;
    return Push(now_ + (begins ? 0 : model_.poll), Kind::kResume, rank.rank_);
  }
  const Time looked = now_ + model_.poll;
  if (looked - rank.waits_since_ > model_.patience) {
    rank.state_ = Rank::State::kSleeping;
  } else {
    host.queue.push_back(&rank);
  }
  GiveUpCore(host, looked);
}

// ------------------------------------------------------------------------------------------------ reduction

namespace {

template <std::size_t kInputs>
void Combine(void* /*out*/, const void* const* /*inputs*/, std::size_t bytes) {
  World::Combine(kInputs * bytes);
}

constexpr KernelSet kSimulated{Combine<2>, Combine<3>, Combine<4>, Combine<8>};

KernelTable MakeTable() {
  KernelTable table{"simulated", {}};
  table.sets[static_cast<int>(DataType::kFloat)][static_cast<int>(ReduceOp::kSum)] = kSimulated;
  table.sets[static_cast<int>(DataType::kInt)][static_cast<int>(ReduceOp::kSum)] = kSimulated;
  return table;
}

}  // namespace

Reduction SimulatedSum(bool order_matters) {
  static const KernelTable table = MakeTable();
  return Reduction::Typed(order_matters ? DataType::kFloat : DataType::kInt, ReduceOp::kSum, table);
}

}  // namespace warren::simulation
