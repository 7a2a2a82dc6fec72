// The engine's own communicator: the collectives over shared memory and TCP.
//
// A call goes: check the arguments; choose an algorithm (collective/choice.h); run it over the host's shared
// memory (host/host_collectives.h), over links (collective/peer_group.h), or both
// (collective/hierarchical.h).
#pragma once

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

#include "rabit_engine/base/communicator.h"
#include "rabit_engine/base/descriptor.h"
#include "rabit_engine/base/layout.h"
#include "rabit_engine/base/settings.h"
#include "rabit_engine/bootstrap/bootstrap.h"
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
  /// Meets the others of the bootstrap's world: tells them its addresses, finds out who shares memory with
  /// whom, and measures. All ranks construct together. `greeting` is a word of the caller's to all others.
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
  /// From now on a rank that ends, or destroys its communicator, is no loss unless others need it: of a world
  /// whose ranks may leave it by themselves, without Finalize.
  void LetRanksLeave();
  std::unique_ptr<TaggedMessages> MakeMailbox() override;

  void Allreduce(void* buffer, std::size_t count, const Reduction& reduction) override;
  /// The same from one buffer, which stays as it is, into another that does not overlap it; through shared
  /// memory without a copy.
  void AllreduceInto(const void* input, void* buffer, std::size_t count, const Reduction& reduction);
  void Broadcast(void* buffer, std::size_t bytes, int root) override;
  void Allgather(void* buffer, std::span<const std::size_t> offsets) override;
  using Communicator::Allgather;
  void ReduceScatter(void* buffer, std::span<const std::size_t> offsets, const Reduction& reduction) override;
  void Reduce(void* buffer, std::size_t count, const Reduction& reduction, int root) override;
  void Barrier() override;
  void Gather(const void* data, std::size_t bytes, void* buffer, std::span<const std::size_t> offsets,
              int root) override;
  void Scatter(const void* buffer, std::span<const std::size_t> offsets, void* data, std::size_t bytes,
               int root) override;
  void AllToAll(const void* from, std::span<const std::size_t> sent, void* to,
                std::span<const std::size_t> received) override;
  void SendReceive(std::span<const Outbound> sends, std::span<const Inbound> receives) override;
  bool has_timeouts() const override { return true; }
  void SetCallTimeout(std::chrono::milliseconds timeout) override;
  void LookForLosses() override;
  void GiveUp() noexcept override { GiveUp(rank_, 0); }
  void TrackerPrint(const std::string& text) override;
  void Finalize() override;
  /// How long a call may wait for a peer that lives, from the next call on; 0: for ever.
  void SetCollectiveTimeout(std::chrono::seconds timeout);

  /// What the ranks gave as their greeting, by rank.
  const std::vector<std::string>& greetings() const { return greetings_; }
  /// Messages from any rank to any other: all ranks give the same list (collective/exchange.h).
  void Exchange(std::span<const Message> messages);
  /// Waits for all ranks, then lets go of links and shared memory: whoever is killed after his last word to
  /// the tracker has nothing left to undo. No collective may follow. Throws LostPeer or TimedOut, and then
  /// nothing is closed.
  void FinishCalls();
  /// After FinishCalls: says goodbye to the tracker and waits until all ranks have. False: one of them was
  /// lost before; this rank has not left and has to be linked again. Throws TimedOut.
  bool LeaveTogether();

  /// Who shares memory with whom.
  const HostLayout& layout() const { return layout_; }

 private:
  /// One made from `parent` by all of its members.
  NativeCommunicator(const NativeCommunicator& parent, const std::string& name, Membership membership);
  void Take(Membership membership);
  void AllgatherForSplit(void* buffer, std::span<const std::size_t> offsets);
  std::vector<std::string> AllgatherTexts(const std::string& own);
  std::vector<int> AgreeOnGroup(int color, int key);
  /// What the members of a group tell each other, by their places in it.
  using Tell = std::function<std::vector<std::string>(const std::string& text)>;
  std::unique_ptr<Communicator> MakeGroup(std::span<const int> group, const std::string& name,
                                          const Tell& tell);
  /// This rank's, which is what messages name.
  int me() const { return members_[rank_]; }
  bool is_world() const { return bootstrap_ != nullptr; }
  void BeginReports();
  void LinkWithNeighbours();
  void LeaveJob();
  void ReportPlace(std::size_t links) const;
  CallTag TagOf(Collective collective, std::size_t count, const Reduction* reduction = nullptr, int root = 0);
  void Begin(CallTag& tag, std::string_view algorithm = {});
  /// Begins a call with the algorithm that is to serve it.
  const collective::Algorithm& BeginBest(Collective collective, std::size_t count,
                                         const Reduction* reduction = nullptr, int root = 0);
  /// The same where one collective is a part of another call.
  const collective::Algorithm& BeginBest(Collective called, Collective served_by, std::size_t count,
                                         const Reduction* reduction = nullptr, int root = 0);
  Clock::time_point Deadline() const;
  /// See Situation.
  bool Rounds(const Reduction& reduction) const;
  /// Whether the algorithm is to be given floats in place of the reduction's elements
  /// (collective/in_floats.h).
  bool RunsInFloats(const collective::Algorithm& algorithm, const Reduction& reduction) const;
  collective::Situation Describe(Collective collective, std::size_t bytes, const Reduction* reduction) const;
  void Report(const collective::Situation& situation, const collective::Algorithm& algorithm);
  /// Guard, and counts the call, of so many bytes of this rank's, where somebody wants to know.
  template <typename Body>
  void Run(std::size_t bytes, Body&& body);
  void BeginCounting(const CallTag& tag, std::string_view algorithm);
  void EndCounting(std::size_t bytes);
  void StopCounting();
  /// Runs a collective; an error in it ends the communicator for all ranks.
  template <typename Body>
  void Guard(Body&& body);
  /// The same for who has the turn of the world.
  template <typename Body>
  void Attempt(Body&& body);
  void ThrowIfLost();
  /// `lost`: the rank whose loss began it.
  void GiveUp(int lost, int shortage) noexcept;
  void CheckBuffer(const void* buffer, std::size_t bytes, const char* call) const;
  void CheckRoot(int root, const char* call) const;
  void CheckOffsets(std::span<const std::size_t> offsets, const char* call) const;
  Transport& transport();

  Settings settings_;
  std::chrono::milliseconds patience_ = settings_.collective_timeout;  ///< of the next call; 0: without end
  collective::ForcedAlgorithms forced_;
  std::shared_ptr<Job> job_;
  std::unique_ptr<Bootstrap> bootstrap_;  ///< of the world
  int rank_ = 0;
  int world_size_ = 1;
  int local_rank_ = 0;
  std::vector<std::string> greetings_;
  bool is_distributed_ = false;
  HostLayout layout_{{}};
  std::vector<int> members_;  ///< ranks of the job
  std::string name_ = "world";
  std::shared_ptr<HostSegment> segment_;
  std::unique_ptr<TcpTransport> tcp_;
  std::unique_ptr<ShmTransport> shm_;
  std::unique_ptr<MixedTransport> mixed_;
  std::unique_ptr<HostCollectives> host_;
  std::unique_ptr<CallWatch> watch_;
  Hosts hosts_;
  std::optional<PeerGroup> world_;  ///< of all ranks; none in a world of one
  std::uint32_t calls_ = 0;
  int splits_ = 0;
  std::uint64_t num_forks_ = NumForks();  ///< of the process that joined
  std::set<std::string> reported_;

  /// What this process tells of its calls; null where nobody is told.
  reporting::Reporter* reporter_ = nullptr;
  bool is_followed_ = false;  ///< it is told which call of this one it is in
  struct CountedCall {
    Collective collective{};
    std::string_view algorithm;
    Clock::time_point since;
  };
  CountedCall counted_;
};

}  // namespace warren
