// The engine's own communicator: the collectives over shared memory and TCP.
//
// A call checks its arguments, chooses an algorithm (collective/choice.h), and runs it over the host's shared
// memory (host/host_collectives.h), over links (collective/peer_group.h), or both
// (collective/hierarchical.h).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rabit_engine/base/descriptor.h"
#include "rabit_engine/base/layout.h"
#include "rabit_engine/base/settings.h"
#include "rabit_engine/bootstrap/bootstrap.h"
#include "rabit_engine/call/communicator.h"
#include "rabit_engine/collective/choice.h"
#include "rabit_engine/collective/exchange.h"
#include "rabit_engine/engine/call_watch.h"
#include "rabit_engine/engine/job.h"
#include "rabit_engine/engine/membership.h"
#include "rabit_engine/engine/mixed_transport.h"
#include "rabit_engine/host/host_collectives.h"
#include "rabit_engine/host/host_segment.h"
#include "rabit_engine/host/shm_transport.h"
#include "rabit_engine/reporting/reporter.h"
#include "rabit_engine/transport/tcp/tcp_transport.h"

namespace warren {

class NativeCommunicator final : public Communicator {
 public:
  /// Joins the bootstrap's world: sends this rank's addresses to the other ranks, finds out which ranks share
  /// memory, and links with the neighboring ranks on other hosts if the bootstrap made no links. A collective
  /// call: blocks until all ranks have joined. `greeting`: a line of text for all other ranks. Throws
  /// EngineError.
  NativeCommunicator(std::unique_ptr<Bootstrap> bootstrap, Listening listening, const Settings& settings,
                     const std::string& greeting = "");
  ~NativeCommunicator() override;

  int rank() const override { return rank_; }
  int world_size() const override { return world_size_; }
  int rank_in_job(int rank) const override { return members_[rank]; }
  std::string name() const override { return name_; }
  bool is_distributed() const override { return is_distributed_; }
  std::string host() const override;
  int local_rank() const override { return local_rank_; }
  int host_of(int rank) const override { return job_->hosts[members_[rank]]; }
  std::unique_ptr<Communicator> Split(int color, int key) override;
  std::unique_ptr<Communicator> Group(std::span<const int> ranks, const std::string& name,
                                      OobAllgather& members) override;
  /// From now on, a rank that ends or destroys its communicator counts as lost only if this rank waits for
  /// it. For worlds whose ranks may leave without Finalize.
  void LetRanksLeave();
  std::unique_ptr<TaggedMessages> MakeMailbox() override;

  void Run(const Operation& operation) override;
  bool has_timeouts() const override { return true; }
  void SetCallTimeout(std::chrono::milliseconds timeout) override;
  void LookForLosses() override;
  void GiveUp() noexcept override {
    if (!has_given_up_) GiveUp(me(), 0);
  }
  void TrackerPrint(const std::string& text) override;
  void Finalize() override;
  /// Sets how long a call may wait for a peer that is alive, from the next call on; 0 waits forever.
  void SetCollectiveTimeout(std::chrono::seconds timeout);

  /// The line that each rank passed as its greeting when the world was formed, indexed by rank.
  const std::vector<std::string>& greetings() const { return greetings_; }
  /// A collective call that sends messages from any rank to any other. All ranks pass the same list
  /// (collective/exchange.h).
  void Exchange(std::span<const PlannedMessage> messages);
  /// Waits for all ranks, then releases links and shared memory, so that a process that is killed after its
  /// last message to the tracker leaves nothing to clean up. No collective may follow. Throws LostPeer or
  /// TimedOut, and then releases nothing.
  void FinishCalls();
  /// To be called after FinishCalls: reports to the tracker that this rank is leaving, and waits until all
  /// ranks have done the same. Returns false if a rank was lost before that; then this rank has not left and
  /// must be linked again. Returns true without waiting if there is no tracker. Throws TimedOut.
  bool LeaveTogether();

  /// The groups of ranks that share memory.
  const HostLayout& layout() const { return layout_; }

 private:
  /// A communicator that some members of `parent` create together.
  NativeCommunicator(const NativeCommunicator& parent, const std::string& name, Membership membership);
  void Take(Membership membership);
  void AllgatherForSplit(void* buffer, std::span<const std::size_t> offsets);
  std::vector<int> AgreeOnGroup(int color, int key);
  /// Sends a string to the other members of a group and returns the strings of all members, in the group's
  /// order.
  using Tell = std::function<std::vector<std::string>(const std::string& text)>;
  std::unique_ptr<Communicator> MakeGroup(std::span<const int> group, const std::string& name,
                                          const Tell& tell);
  /// This rank's number in the job, used in messages to the user.
  int me() const { return members_[rank_]; }
  bool is_world() const { return bootstrap_ != nullptr; }
  void BeginReports();
  void LinkWithNeighbours();
  void LeaveJob();
  void ReportPlace(std::size_t links) const;
  void RequireValid(const Operation& operation) const;
  void RunAlone(const Operation& operation) const;
  void RunMessages(const Operation& operation);
  /// Runs a call that has begun.
  void RunBegun(const collective::Algorithm& algorithm, const Operation& operation);
  void RunInPlace(const collective::Algorithm& algorithm, const Operation& operation);
  /// Begins a call with this tag, whose sequence number is set here. `algorithm`: the name of the algorithm
  /// that will run; empty for an exchange, which has no choice of algorithms.
  void Begin(CallTag& tag, std::string_view algorithm = {});
  /// Chooses the algorithm for an operation, begins the call, and returns the algorithm. `called`: the kind
  /// of call that the tag shows to other ranks.
  const collective::Algorithm& BeginBest(Collective called, const Operation& operation);
  Clock::time_point Deadline() const;
  /// See Situation::rounds.
  bool Rounds(const Reduction& reduction) const;
  /// Whether the algorithm must be given floats in place of the reduction's elements
  /// (collective/in_floats.h).
  bool RunsInFloats(const collective::Algorithm& algorithm, const Reduction& reduction) const;
  collective::Situation Describe(const Operation& operation, std::size_t bytes) const;
  void Report(const collective::Situation& situation, const collective::Algorithm& algorithm);
  /// Like Guard. Also counts the call and the `bytes` of this rank if there is a reporter.
  template <typename Body>
  void Counted(std::size_t bytes, Body&& body);
  void BeginCounting(const CallTag& tag, std::string_view algorithm);
  void EndCounting(std::size_t bytes);
  void StopCounting();
  /// Runs `body`, which makes a call. An error in it ends the communicator for all ranks.
  template <typename Body>
  void Guard(Body&& body);
  /// Like Guard, for a caller that already holds the turn of the world.
  template <typename Body>
  void Attempt(Body&& body);
  void ThrowIfLost();
  /// `lost`: the rank whose loss or error caused the failure; `shortage`: see Transport::Abort.
  void GiveUp(int lost, int shortage) noexcept;
  Transport& transport();

  Settings settings_;
  /// Timeout of the next call; 0 waits forever.
  std::chrono::milliseconds patience_ = settings_.collective_timeout;
  collective::ForcedAlgorithms forced_;
  std::shared_ptr<Job> job_;
  std::unique_ptr<Bootstrap> bootstrap_;  ///< set in the world only
  int rank_ = 0;
  int world_size_ = 1;
  int local_rank_ = 0;
  std::vector<std::string> greetings_;
  bool is_distributed_ = false;
  HostLayout layout_{{}};
  std::vector<int> members_;  ///< ranks in the job, by rank here
  std::string name_ = "world";
  std::shared_ptr<HostSegment> segment_;
  std::unique_ptr<TcpTransport> tcp_;
  std::unique_ptr<ShmTransport> shm_;
  std::unique_ptr<MixedTransport> mixed_;
  std::unique_ptr<HostCollectives> host_;
  std::unique_ptr<CallWatch> watch_;
  Hosts hosts_;
  std::optional<PeerGroup> world_;  ///< all ranks of this communicator; empty if there is only one
  std::uint32_t calls_ = 0;
  std::atomic<bool> has_given_up_ = false;
  int splits_ = 0;
  std::uint64_t num_forks_ = NumForks();  ///< NumForks() in the process that joined
  std::set<std::string> reported_;

  /// Reports the calls of this process; nullptr if nothing is reported.
  reporting::Reporter* reporter_ = nullptr;
  bool is_followed_ = false;  ///< whether the reporter also shows the call that this communicator is in
  struct CountedCall {
    Collective collective{};
    std::string_view algorithm;
    Clock::time_point since;
  };
  CountedCall counted_;
};

}  // namespace warren
