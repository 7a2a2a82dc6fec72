// Whole jobs on the tracker's state machine: simulated rabit workers whose messages are split and interleaved
// at random, processes that die at any time and are restarted, and trackers that die and are replaced. The
// failure message contains the seed of the run.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/random_cases.h"
#include "tracker/job.h"

namespace warren::tracker {
namespace {

namespace classic = wire::classic;

/// One classic worker process and the two directions of its connection to the tracker.
struct Worker {
  enum class Step { kOffline, kMagic, kAssignment, kPlan, kConnecting, kAccepting, kUp, kShutDown };
  Step step = Step::kOffline;
  ConnectionId connection = 0;
  std::string to_tracker;
  classic::TrackerStream from_tracker;
  int rank = -1;
  int port = 0;
  int waits_to_accept = 0;
  bool noted = false;  ///< whether the tracker has confirmed that it noted the port
  bool has_linked = false;
  classic::LinkPlan plan;
  std::map<int, int>
      links;  ///< peer rank -> the peer's port when the link was made (tells the peer's processes apart)
};

class World {
 public:
  World(int size, unsigned seed)
      : options_{size, SortBy::kTask, false, std::chrono::milliseconds(0), true},
        random_(seed),
        workers_(size) {
    job_.emplace(options_, now_);
  }

  /// Runs until every worker is up; lets time pass when nothing else happens. Returns false after doing so
  /// 100 times.
  bool RunUntilUp() {
    const int patience = 100 * static_cast<int>(workers_.size());
    for (int waits = 0; waits < 100; ++waits) {
      for (int idle = 0; idle < patience;) {
        if (AllUp()) return true;
        idle = Step() ? 0 : idle + 1;
      }
      PassTime();
    }
    return false;
  }

  /// Runs a number of single steps, so that a death can happen at any point.
  void RunFor(int steps) {
    for (int i = 0; i < steps; ++i) Step();
  }

  /// Kills the process of `task`. Survivors that had links to the process recover, as rabit's workers do.
  void Kill(int task) {
    Worker& dead = workers_[task];
    if (dead.connection != 0) job_->Closed(dead.connection, "killed", now_);
    const int rank = dead.rank;
    dead = Worker{};
    for (Worker& survivor : workers_) {
      if (survivor.links.erase(rank) > 0 && survivor.step == Worker::Step::kUp) Recover(survivor);
    }
  }

  /// Replaces the tracker with one that takes over from the notes. The old tracker may have read a worker's
  /// message without acting on it. Workers in the middle of an exchange drop their links and start over, as
  /// Warren's engine does, except those that only accept links and whose port has been noted.
  void ReplaceTracker() {
    Worker& heard = workers_[random_() % workers_.size()];
    if (!heard.to_tracker.empty() && random_() % 2 == 0) {
      job_->Received(heard.connection, heard.to_tracker, now_);
      heard.to_tracker.clear();
    }
    job_.emplace(options_, now_);
    job_->TakeOver(notes_, now_);
    for (Worker& worker : workers_) {
      const bool in_exchange = worker.step >= Worker::Step::kMagic && worker.step <= Worker::Step::kAccepting;
      if (in_exchange && (worker.step != Worker::Step::kAccepting || !worker.noted)) BreakOff(worker);
    }
    TakeActions();
  }

  void BreakOff(Worker& worker) {
    for (Worker& other : workers_) {
      if (other.links.erase(worker.rank) > 0 && other.step == Worker::Step::kUp) Recover(other);
    }
    worker.links.clear();
    worker.waits_to_accept = 0;
    if (!worker.has_linked) worker.rank = -1;
    Open(worker, worker.has_linked ? classic::Command::kRecover : classic::Command::kStart);
  }

  /// Whether the tracker reports no worker as not linked or not returned.
  bool TrackerIsContent() const {
    const std::string missing = job_->DescribeMissing();
    return missing.find("not linked yet") == std::string::npos &&
           missing.find("did not return") == std::string::npos;
  }

  void ExpectLinked(const std::string& where) {
    const Topology topology(static_cast<int>(workers_.size()));
    std::map<int, const Worker*> by_rank;
    for (const Worker& worker : workers_) by_rank[worker.rank] = &worker;
    ASSERT_EQ(by_rank.size(), workers_.size()) << where;
    for (const auto& [rank, worker] : by_rank) {
      for (const int peer : topology.neighbors(rank)) {
        EXPECT_TRUE(worker->links.contains(peer)) << where << ": rank " << rank << " lacks rank " << peer;
      }
    }
  }

  /// Describes the state of all workers, for failure messages.
  std::string Describe() const {
    std::string text;
    for (std::size_t task = 0; task < workers_.size(); ++task) {
      const Worker& worker = workers_[task];
      text += fmt::format("\n  task {} rank {} step {} unsent {} waits to accept {} links", task, worker.rank,
                          static_cast<int>(worker.step), worker.to_tracker.size(), worker.waits_to_accept);
      for (const auto& [peer, port] : worker.links) text += fmt::format(" {}", peer);
    }
    return text + "\n  " + job_->DescribeMissing();
  }

  void ShutDownAll() {
    for (std::size_t task = 0; task < workers_.size(); ++task) {
      const ConnectionId id = next_connection_++;
      job_->Opened(id, "10.0.0.1", 1, now_);
      job_->Received(id,
                     classic::EncodeMagic() +
                         classic::Encode(classic::Hello{workers_[task].rank, -1, std::to_string(task),
                                                        classic::Command::kShutdown}),
                     now_);
    }
    TakeActions();
  }
  bool finished_well() const { return finished_well_; }

 private:
  bool AllUp() const {
    return std::all_of(workers_.begin(), workers_.end(),
                       [](const Worker& worker) { return worker.step == Worker::Step::kUp; });
  }

  void Open(Worker& worker, classic::Command command) {
    const auto task = static_cast<std::size_t>(&worker - workers_.data());
    worker.connection = next_connection_++;
    worker.from_tracker = {};
    worker.to_tracker = classic::EncodeMagic() +
                        classic::Encode(classic::Hello{worker.rank, -1, std::to_string(task), command});
    worker.step = Worker::Step::kMagic;
    worker.port = next_port_++;
    job_->Opened(worker.connection, "10.0.0.1", 1, now_);
  }

  void Recover(Worker& worker) { Open(worker, classic::Command::kRecover); }

  void SayGoodLinks(Worker& worker) {
    classic::GoodLinks good;
    for (const auto& [peer, port] : worker.links) good.ranks.push_back(peer);
    worker.to_tracker += classic::Encode(good);
    worker.step = Worker::Step::kPlan;
  }

  /// Makes a randomly chosen worker do one thing. Returns false if it had nothing to do.
  bool Step() {
    Worker& worker = workers_[random_() % workers_.size()];
    if (worker.step == Worker::Step::kOffline) {
      Open(worker, classic::Command::kStart);
      return true;
    }
    if (!worker.to_tracker.empty() && random_() % 2 == 0) {
      const std::size_t piece = 1 + random_() % worker.to_tracker.size();
      job_->Received(worker.connection, std::string_view(worker.to_tracker).substr(0, piece), now_);
      worker.to_tracker.erase(0, piece);
      TakeActions();
      return true;
    }
    return Advance(worker);
  }

  bool Advance(Worker& worker) {
    switch (worker.step) {
      case Worker::Step::kMagic:
        if (!worker.from_tracker.NextMagic()) return false;
        worker.step = Worker::Step::kAssignment;
        return true;
      case Worker::Step::kAssignment: {
        const auto assignment = worker.from_tracker.NextAssignment();
        if (!assignment) return false;
        if (worker.rank >= 0) {
          EXPECT_EQ(worker.rank, assignment->rank);
        }
        worker.rank = assignment->rank;
        SayGoodLinks(worker);
        return true;
      }
      case Worker::Step::kPlan: {
        auto plan = worker.from_tracker.NextLinkPlan();
        if (!plan) return false;
        worker.plan = std::move(*plan);
        worker.step = Worker::Step::kConnecting;
        return true;
      }
      case Worker::Step::kConnecting:
        Connect(worker);
        return true;
      case Worker::Step::kAccepting:
        if (worker.waits_to_accept > 0 || !worker.noted) return false;
        worker.step = Worker::Step::kUp;
        worker.has_linked = true;
        // Neighbors that have died in the meantime are noticed when their links are first used.
        for (const Worker& other : workers_) {
          const auto link = worker.links.find(other.rank);
          if (link != worker.links.end() && !other.links.contains(worker.rank)) worker.links.erase(link);
        }
        if (worker.links.size() < Topology(static_cast<int>(workers_.size())).neighbors(worker.rank).size()) {
          Recover(worker);
        }
        return true;
      default:
        return false;
    }
  }

  void Connect(Worker& worker) {
    int errors = 0;
    for (const classic::Endpoint& peer : worker.plan.connect) {
      const auto found = std::find_if(workers_.begin(), workers_.end(), [&](const Worker& other) {
        return other.port == peer.port && other.rank == peer.rank;
      });
      const bool listens = found != workers_.end() && found->waits_to_accept > 0;
      if (!listens || random_() % 16 == 0) {  // some connections fail at random
        ++errors;
        continue;
      }
      --found->waits_to_accept;
      found->links[worker.rank] = worker.port;
      worker.links[peer.rank] = found->port;
    }
    worker.to_tracker += classic::Encode(classic::LinkErrors{errors});
    if (errors > 0) return SayGoodLinks(worker);
    worker.to_tracker += classic::Encode(classic::ListenPort{worker.port});
    worker.waits_to_accept = worker.plan.num_accept;
    worker.noted = false;
    worker.step = Worker::Step::kAccepting;
  }

  void PassTime() {
    now_ += std::chrono::milliseconds(100);
    job_->Tick(now_);
    TakeActions();
  }

  void TakeActions() {
    for (Action& action : job_->TakeActions()) {
      if (auto* send = std::get_if<Send>(&action)) {
        for (Worker& worker : workers_) {
          if (worker.connection != send->connection) continue;
          if (worker.step == Worker::Step::kAccepting) {
            EXPECT_EQ(send->bytes, classic::Encode(classic::TrackerWord::kNoted));
            worker.noted = true;
          } else {
            worker.from_tracker.Append(send->bytes);
          }
        }
      }
      if (auto* report = std::get_if<Report>(&action)) {
        const bool harmless =
            report->severity != Severity::kWarning || report->text.find("killed") != std::string::npos;
        EXPECT_TRUE(harmless) << report->text;
      }
      if (auto* note = std::get_if<Note>(&action)) notes_.push_back(DecodeNote(Encode(*note)));
      if (auto* end = std::get_if<Finished>(&action)) finished_well_ = end->failure.empty();
    }
  }

  TimePoint now_{};
  JobOptions options_;
  std::optional<Job> job_;
  std::vector<Note> notes_;
  std::mt19937 random_;
  std::vector<Worker> workers_;
  ConnectionId next_connection_ = 1;
  int next_port_ = 1;
  bool finished_well_ = false;
};

TEST(Simulation, LinksEveryWorldWhateverTheOrderOfEvents) {
  for (const int size : {1, 2, 3, 4, 5, 8, 13, 40}) {
    for (unsigned seed = 0; seed < 50; ++seed) {
      const std::string where = fmt::format("size {} seed {}", size, seed);
      World world(size, seed);
      ASSERT_TRUE(world.RunUntilUp()) << where << world.Describe();
      world.ExpectLinked(where);
      world.ShutDownAll();
      EXPECT_TRUE(world.finished_well()) << where;
    }
  }
}

TEST(Simulation, LinksTheWorldAgainAfterDeathsAtAnyMoment) {
  for (const int size : {2, 3, 5, 9}) {
    for (unsigned seed = 0; seed < RandomCases(1000); ++seed) {
      const std::string where = fmt::format("size {} seed {}", size, seed);
      World world(size, seed);
      std::mt19937 random(seed + 1000);
      for (int death = 0; death < 3; ++death) {
        world.RunFor(static_cast<int>(random() % (60U * static_cast<unsigned>(size))));
        world.Kill(static_cast<int>(random() % static_cast<unsigned>(size)));
      }
      ASSERT_TRUE(world.RunUntilUp()) << where << world.Describe();
      world.ExpectLinked(where);
    }
  }
}

TEST(Simulation, LinksTheWorldWhenTrackersDieAtAnyMoment) {
  for (const int size : {1, 2, 3, 5, 9}) {
    for (unsigned seed = 0; seed < RandomCases(1000); ++seed) {
      const std::string where = fmt::format("size {} seed {}", size, seed);
      World world(size, seed);
      std::mt19937 random(seed + 1000);
      for (int death = 0; death < 4; ++death) {
        world.RunFor(static_cast<int>(random() % (60U * static_cast<unsigned>(size))));
        if (random() % 2 == 0) world.Kill(static_cast<int>(random() % static_cast<unsigned>(size)));
        world.ReplaceTracker();
      }
      ASSERT_TRUE(world.RunUntilUp()) << where << world.Describe();
      world.ExpectLinked(where);
      EXPECT_TRUE(world.TrackerIsContent()) << where << world.Describe();
      world.ShutDownAll();
      EXPECT_TRUE(world.finished_well()) << where;
    }
  }
}

}  // namespace
}  // namespace warren::tracker
