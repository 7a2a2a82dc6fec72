// Simulated ranks run random programs, which send messages over links that hold few bytes. In half of the
// worlds, links and probes are slow, and ranks stop for a while. If a rank reports a cycle of waiting ranks,
// the test checks that these ranks really can never progress.
#include "rabit_engine/engine/deadlock_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>

namespace warren {
namespace {

constexpr double kTick = 0.05;
constexpr std::uint64_t kCapacity = 3;  // messages have 1 to 8 bytes

/// The sends and receives of one call.
struct Step {
  struct Part {
    int peer;
    std::uint64_t bytes;
  };
  std::vector<Part> sends;
  std::vector<Part> receives;
};

/// One direction of a link between two ranks. Sent bytes stay in the sender's buffer until they are
/// acknowledged, and in the peer's buffer until the peer reads them. Shared memory is one buffer.
struct Channel {
  bool is_remote = false;
  std::uint64_t sent = 0;
  std::uint64_t come = 0;
  std::uint64_t acknowledged = 0;
  std::uint64_t received = 0;
  std::deque<std::pair<double, std::uint64_t>> arrivals;  ///< a time, and the bytes that have arrived by then
  std::deque<std::pair<double, std::uint64_t>> acknowledgements;

  std::uint64_t room() const { return kCapacity - (sent - (is_remote ? acknowledged : received)); }
  /// The free space once everything has arrived and been acknowledged, without further reads by the peer.
  std::uint64_t most_room() const { return (is_remote ? 2 : 1) * kCapacity - (sent - received); }
  bool is_full() const { return acknowledged == come && come < sent && come - received == kCapacity; }
  /// Advances the network to `now`.
  void Carry(double now, double delay) {
    for (; !arrivals.empty() && arrivals.front().first <= now; arrivals.pop_front()) {
      const std::uint64_t most = received + kCapacity;
      const std::uint64_t before = std::exchange(come, std::min(arrivals.front().second, most));
      if (come > before) acknowledgements.emplace_back(now + delay, come);
      if (come < arrivals.front().second) break;
    }
    for (; !acknowledgements.empty() && acknowledgements.front().first <= now; acknowledgements.pop_front()) {
      acknowledged = acknowledgements.front().second;
    }
  }
};

struct Rank {
  std::vector<Step> program;
  std::size_t next = 0;
  Step left;  ///< the unfinished sends and receives of the current step
  bool in_step = false;
  double computes_until = 0;
  double stopped_until = 0;
  double since = -1;  ///< start of its wait; negative if it is not waiting
  double next_look = 0;
  double looked = -1;  ///< time of its last check for progress; negative if the result is in `record`
  WaitRecord record;
  std::unique_ptr<DeadlockSearch> search;
  std::vector<std::pair<double, WaitProbe>> probes;  ///< in transit to this rank, with arrival times
  bool has_ended() const { return next == program.size() && !in_step; }
};

class World {
 public:
  World(std::uint64_t seed, bool may_be_stuck) : random_(seed) {
    const int size = Pick(2, 8);
    ranks_.resize(size);
    host_.resize(size);
    const int hosts = Pick(1, size);
    for (int rank = 0; rank < size; ++rank) {
      host_[rank] = Pick(1, hosts);
      ranks_[rank].search = std::make_unique<DeadlockSearch>(
          rank, size,
          DeadlockSearch::View{
              .shares_memory = [this, rank](int other) { return host_[rank] == host_[other]; },
              .wait_of = [this](int other) -> std::optional<WaitRecord> {
                const WaitRecord& record = ranks_[other].record;
                const double age = now - static_cast<double>(record.renewed) * 1e-9;
                if (record.renewed == 0 || age > DeadlockSearch::kFresh) return std::nullopt;
                return record;
              },
              .now = [this] { return now; }});
    }
    channels_.resize(static_cast<std::size_t>(size * size));
    slow_ = Pick(0, 1) == 1;
    Write(may_be_stuck);
  }

  /// Advances the world by kTick. Returns true if a rank has found a cycle or all ranks have ended.
  bool Advance() {
    now += kTick;
    std::vector<int> order(ranks_.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    for (const int rank : order) {
      Rank& self = ranks_[rank];
      if (now < self.computes_until || now < self.stopped_until || self.has_ended()) continue;
      if (slow_ && Pick(0, 400) == 0) {
        self.stopped_until = now + Pick(0, 6);
        continue;
      }
      if (self.looked < 0) {
        Run(rank);
        if (self.since < 0 || now < self.next_look || now - self.since <= 0.15) continue;
        self.looked = now;
        if (slow_ && Pick(0, 50) == 0) {
          self.stopped_until = now + Pick(0, 6);
          continue;
        }
      }
      Look(rank);
      if (!self.search->found().empty()) {
        found = rank;
        return true;
      }
    }
    return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.has_ended(); });
  }

  /// For each rank, whether it can never progress.
  std::vector<bool> Stuck() {
    std::vector<bool> stuck;
    for (const Rank& rank : ranks_) stuck.push_back(rank.in_step && now >= rank.computes_until);
    for (bool changes = true; std::exchange(changes, false);) {
      for (int rank = 0; rank < size(); ++rank) {
        if (stuck[rank] && MayEnd(rank, stuck)) {
          stuck[rank] = false;
          changes = true;
        }
      }
    }
    return stuck;
  }

  /// Whether `rank` acts as in a send or receive call. Rank 0 acts as in a collective call: it does not keep
  /// sending probes by itself.
  static bool IsForMessages(int rank) { return rank != 0; }
  bool is_slow() const { return slow_; }
  int size() const { return static_cast<int>(ranks_.size()); }
  const DeadlockSearch& search(int rank) const { return *ranks_[rank].search; }

  double now = 1;
  int found = -1;
  int num_probes = 0;

 private:
  int Pick(int least, int most) { return std::uniform_int_distribution(least, most)(random_); }
  Channel& Between(int from, int to) {
    Channel& channel = channels_[static_cast<std::size_t>(from * size() + to)];
    channel.is_remote = IsRemote(from, to);
    channel.Carry(now, channel.is_remote ? Delay() : 0);
    return channel;
  }
  double Delay() { return slow_ ? 0.5 * Pick(0, 12) : 0.01; }
  bool IsRemote(int a, int b) const { return host_[a] != host_[b]; }

  /// Writes the ranks' programs, with messages in an order that lets all ranks end. If `may_be_stuck`, some
  /// ranks then swap two of their calls.
  void Write(bool may_be_stuck) {
    const int messages = Pick(0, 3) == 0 ? 40 : Pick(1, 12);
    for (int i = 0; i < messages; ++i) {
      const int from = Pick(0, size() - 1);
      const int to = (from + Pick(1, size() - 1)) % size();
      const auto bytes = static_cast<std::uint64_t>(Pick(1, 8));
      ranks_[from].program.push_back({{{to, bytes}}, {}});
      ranks_[to].program.push_back({{}, {{from, bytes}}});
    }
    for (Rank& rank : ranks_) {
      if (may_be_stuck && Pick(0, 1) == 0 && rank.program.size() > 1) {
        // Messages between the same two ranks keep their order, since otherwise sends and receives would not
        // match.
        const auto a = static_cast<std::size_t>(Pick(0, static_cast<int>(rank.program.size()) - 2));
        const auto peers = [](const Step& step) {
          return std::pair(step.sends.empty() ? -1 : step.sends[0].peer,
                           step.receives.empty() ? -1 : step.receives[0].peer);
        };
        if (peers(rank.program[a]) != peers(rank.program[a + 1])) {
          std::swap(rank.program[a], rank.program[a + 1]);
        }
      }
      // Merges some steps into one call.
      for (std::size_t i = 0; i + 1 < rank.program.size(); ++i) {
        if (Pick(0, 3) != 0) continue;
        Step& step = rank.program[i];
        const Step& following = rank.program[i + 1];
        step.sends.insert(step.sends.end(), following.sends.begin(), following.sends.end());
        step.receives.insert(step.receives.end(), following.receives.begin(), following.receives.end());
        rank.program.erase(rank.program.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
    }
  }

  void Run(int rank) {
    Rank& self = ranks_[rank];
    if (!self.in_step) {
      if (Pick(0, 3) == 0) {
        self.computes_until = now + 0.3 * Pick(0, 12);
        return;
      }
      self.left = self.program[self.next++];
      self.in_step = true;
    }
    bool moved = false;
    const auto each = [&](std::vector<Step::Part>& parts, auto&& move) {
      std::vector<bool> is_blocked(ranks_.size());  // messages between two ranks arrive in order
      for (Step::Part& part : parts) {
        if (is_blocked[part.peer]) continue;
        const std::uint64_t bytes = std::min(part.bytes, move(part.peer));
        part.bytes -= bytes;
        moved = moved || bytes > 0;
        is_blocked[part.peer] = part.bytes > 0;
        Move(parts, rank, part, bytes);
      }
      std::erase_if(parts, [](const Step::Part& part) { return part.bytes == 0; });
    };
    each(self.left.sends, [&](int peer) { return Between(rank, peer).room(); });
    each(self.left.receives, [&](int peer) {
      const Channel& channel = Between(peer, rank);
      return channel.come - channel.received;
    });
    if (self.left.sends.empty() && self.left.receives.empty()) {
      self.in_step = false;
      self.since = -1;
    } else if (moved || self.since < 0) {
      self.since = now + 1e-6 * static_cast<double>(++waits_);
      self.next_look = now + 0.15;
    }
  }

  void Move(const std::vector<Step::Part>& parts, int rank, const Step::Part& part, std::uint64_t bytes) {
    if (bytes == 0) return;
    if (&parts == &ranks_[rank].left.receives) {
      Between(part.peer, rank).received += bytes;
      return;
    }
    Channel& channel = Between(rank, part.peer);
    channel.sent += bytes;
    const double before = channel.arrivals.empty() ? 0 : channel.arrivals.back().first;
    const double delay = channel.is_remote ? Delay() : 0;
    channel.arrivals.emplace_back(std::max(before, now + delay), channel.sent);
  }

  LinkState LinkWith(int rank, int peer) {
    if (!IsRemote(rank, peer)) return {.shares_memory = true};
    const Channel& out = Between(rank, peer);
    return {.is_linked = true,
            .sent = out.sent,
            .received = Between(peer, rank).received,
            .is_full = out.is_full()};
  }

  std::vector<Interest> Interests(int rank) const {
    std::vector<Interest> interests;
    const auto add = [&](int peer) -> Interest& {
      for (Interest& interest : interests) {
        if (interest.peer == peer) return interest;
      }
      return interests.emplace_back(Interest{peer, false, false});
    };
    for (const Step::Part& part : ranks_[rank].left.sends) add(part.peer).to_send = true;
    for (const Step::Part& part : ranks_[rank].left.receives) add(part.peer).to_receive = true;
    return interests;
  }

  /// Publishes the rank's wait and searches for a deadlock, like CallWatch::SayWait and LookForDeadlock.
  void Look(int rank) {
    Rank& self = ranks_[rank];
    self.next_look = now + 0.05 * Pick(1, 4);
    const std::vector<Interest> interests = Interests(rank);
    self.record = {static_cast<std::int64_t>(self.since * 1e9), static_cast<std::int64_t>(self.looked * 1e9)};
    self.looked = -1;
    for (const Interest& interest : interests) {
      if (self.record.num_edges == WaitRecord::kMostEdges) break;
      const auto edge = EdgeOf(rank, interest, LinkWith(rank, interest.peer));
      if (edge) self.record.edges[self.record.num_edges++] = *edge;
    }
    Deliver(self.search->Tick(self.record, IsForMessages(rank)));
    if (now - static_cast<double>(self.record.renewed) * 1e-9 > DeadlockSearch::kFresh) return;
    std::map<int, WaitProbe> come;
    std::erase_if(self.probes, [&](const auto& probe) {
      if (probe.first > now) return false;
      come[probe.second.origin] = probe.second;
      return true;
    });
    for (const auto& [origin, probe] : come) {
      const auto own = std::find_if(interests.begin(), interests.end(),
                                    [waiter = probe.waiter](const Interest& i) { return i.peer == waiter; });
      const Interest* const interest = own == interests.end() ? nullptr : &*own;
      if (Holds(probe, interest, LinkWith(rank, probe.waiter))) {
        Deliver(self.search->Take(probe));
      }
    }
  }

  void Deliver(const std::optional<DeadlockSearch::ProbeMessage>& message) {
    if (!message) return;
    ++num_probes;
    ranks_[message->to].probes.emplace_back(now + (slow_ ? 0.2 * Pick(0, 15) : 0.001), message->probe);
  }

  /// Whether a rank's step can end if all ranks that are not stuck progress as far as they can.
  bool MayEnd(int rank, const std::vector<bool>& stuck) {
    std::map<int, std::uint64_t> wanted;
    for (const Step::Part& part : ranks_[rank].left.receives) wanted[part.peer] += part.bytes;
    for (const auto& [peer, bytes] : wanted) {
      const Channel& in = Between(peer, rank);
      const bool sends = std::any_of(ranks_[peer].left.sends.begin(), ranks_[peer].left.sends.end(),
                                     [&](const Step::Part& part) { return part.peer == rank; });
      if (stuck[peer] && !sends && in.sent - in.received < bytes) return false;
    }
    for (const Step::Part& part : ranks_[rank].left.sends) {
      const Channel& out = Between(rank, part.peer);
      const bool reads =
          std::any_of(ranks_[part.peer].left.receives.begin(), ranks_[part.peer].left.receives.end(),
                      [&](const Step::Part& theirs) { return theirs.peer == rank; });
      if (stuck[part.peer] && !reads && out.most_room() < part.bytes) return false;
    }
    return true;
  }

  std::mt19937_64 random_;
  std::vector<Rank> ranks_;
  std::vector<int> host_;
  bool slow_ = false;
  std::uint64_t waits_ = 0;
  std::vector<Channel> channels_;
};

int NumWorlds() {
  const char* const text = std::getenv("WARREN_RANDOM_PROGRAMS");
  return text == nullptr ? 1000 : std::atoi(text);
}

TEST(DeadlockSearch, FindsEachCircleAndNothingElse) {
  std::vector<double> seconds;
  for (int seed = 0; seed < NumWorlds(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(static_cast<std::uint64_t>(seed), true);
    double stuck_since = 0;
    for (int tick = 0; !world.Advance(); ++tick) {
      if (tick % 20 != 0) continue;
      const std::vector<bool> stuck = world.Stuck();
      const bool is_stuck = std::find(stuck.begin(), stuck.end(), true) != stuck.end();
      if (!is_stuck) {
        stuck_since = 0;
      } else if (stuck_since == 0) {
        stuck_since = world.now;
      }
      ASSERT_TRUE(stuck_since == 0 || world.now - stuck_since < 1000) << "not found";
      ASSERT_LT(world.now, 2000) << "the program does not end";
    }
    if (world.found < 0) continue;
    if (!world.is_slow()) seconds.push_back(stuck_since == 0 ? 0 : world.now - stuck_since);
    ASSERT_TRUE(world.Stuck()[world.found]) << "rank " << world.found << " is not in a circle";
    const std::vector<int>& circle = world.search(world.found).found();
    ASSERT_EQ(circle.front(), world.found);
    for (const int rank : circle) ASSERT_TRUE(world.Stuck()[rank]) << "rank " << rank << " can go on";
  }
  ASSERT_GT(seconds.size(), static_cast<std::size_t>(NumWorlds()) / 40);
  // The search is fast even if the first rank of a cycle has been waiting for a long time when the last one
  // joins.
  std::sort(seconds.begin(), seconds.end());
  EXPECT_LT(seconds[seconds.size() / 2], 4);
  EXPECT_LT(seconds[seconds.size() * 9 / 10], 10);
}

TEST(DeadlockSearch, SaysNothingOfProgramsThatEnd) {
  for (int seed = 0; seed < NumWorlds() / 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(static_cast<std::uint64_t>(seed), false);
    while (!world.Advance()) ASSERT_LT(world.now, 2000) << "the program does not end";
    ASSERT_LT(world.found, 0);
  }
}

TEST(DeadlockSearch, ACircleHasToBeOfTheSameWaitsAtTheSecondLook) {
  WaitRecord own{1, 1, 1, {WaitEdge{1}}};
  WaitRecord other{1, 1, 1, {WaitEdge{0}}};
  double now = 0;
  DeadlockSearch search(0, 2,
                        {.shares_memory = [](int) { return true; },
                         .wait_of = [&](int rank) { return rank == 0 ? own : other; },
                         .now = [&] { return now; }});
  for (int second = 1; second <= 10; ++second) {
    now = second;
    other.since = second;  // the rank has made progress and is waiting again
    EXPECT_FALSE(search.Tick(own, true));
    EXPECT_TRUE(search.found().empty());
  }
  for (now = 50; now < 52; ++now) search.Tick(own, true);
  EXPECT_EQ(search.found(), (std::vector<int>{0, 1}));
}

/// Simulates a chain of ranks, each on its own host and waiting for the next; the last rank makes no call.
/// Returns the number of probes sent.
int ProbesOfChain(int size, double seconds) {
  std::vector<WaitRecord> records(size);
  std::vector<DeadlockSearch> searches;
  double now = 0;
  for (int rank = 0; rank < size; ++rank) {
    searches.emplace_back(rank, size,
                          DeadlockSearch::View{.shares_memory = [rank](int other) { return other == rank; },
                                               .wait_of = [&, rank](int) { return records[rank]; },
                                               .now = [&] { return now; }});
    records[rank] = {1, 1, 1, {WaitEdge{rank + 1, WaitKind::kReceive}}};
  }
  int sent = 0;
  for (; now < seconds; now += 0.2) {
    std::deque<DeadlockSearch::ProbeMessage> messages;
    const auto send = [&](const std::optional<DeadlockSearch::ProbeMessage>& message) {
      if (!message) return;
      ++sent;
      if (message->to < size - 1) messages.push_back(*message);
    };
    for (int rank = 0; rank < size - 1; ++rank) send(searches[rank].Tick(records[rank], true));
    for (; !messages.empty(); messages.pop_front()) {
      const DeadlockSearch::ProbeMessage message = messages.front();
      send(searches[message.to].Take(message.probe));
    }
  }
  return sent;
}

TEST(DeadlockSearch, LongChainsSendFewProbes) {
  // Each rank starts at least 4 probes in 5 seconds, and each probe is forwarded about log2(n) times.
  const int small = ProbesOfChain(64, 5);
  const int large = ProbesOfChain(1024, 5);
  EXPECT_GE(small, 64 * 4);
  EXPECT_LT(large, 1024 * 4 * 12);
  EXPECT_LT(large, small * 16 * 3);
  // Later, probes become rarer: each rank then starts at most one every 30 seconds.
  EXPECT_LT(ProbesOfChain(64, 3600), 64 * (3600 / 30 + 10) * 8);
}

}  // namespace
}  // namespace warren
