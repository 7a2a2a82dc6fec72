// The interface of every engine behind the APIs: rank, size and the collectives.
//
// All ranks of a communicator make the same calls in the same order. Errors: LostPeer, TimedOut,
// LocalShortage, Misuse and other EngineErrors (error.h). After an error in a collective, other than Refused,
// the communicator can only be destroyed. Not thread-safe, but different threads may use different
// communicators concurrently.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "rabit_engine/base/tagged_messages.h"
#include "rabit_engine/call/operation.h"

namespace warren {

class OobAllgather;

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  /// Whether there are other ranks, or the job has a tracker.
  virtual bool is_distributed() const = 0;
  /// The name of this host.
  virtual std::string host() const = 0;
  /// This rank's local rank: the number of lower ranks on this host. WARREN_HOST_GROUP has no effect on it.
  virtual int local_rank() const = 0;

  /// Runs one collective. Reductions are in place, except that an allreduce may go from one buffer to
  /// another; callers compute averages themselves (api/reduce_from_to.h). Throws Refused, before it involves
  /// other ranks, if EngineComplaint finds an error in the operation or this engine lacks the collective.
  ///
  /// Two ranks make all calls that involve both, messages included, in the same order. Messages from one rank
  /// to another keep their order.
  virtual void Run(const Operation& operation) = 0;

  void Allreduce(void* buffer, std::size_t count, const Reduction& reduction) {
    Run(Operation::Allreduce(buffer, count, reduction));
  }
  void Reduce(void* buffer, std::size_t count, const Reduction& reduction, int root) {
    Run(Operation::Reduce(buffer, count, reduction, root));
  }
  void ReduceScatter(void* buffer, std::span<const std::size_t> offsets, const Reduction& reduction) {
    Run(Operation::ReduceScatter(buffer, offsets, reduction));
  }
  void Broadcast(void* buffer, std::size_t bytes, int root) {
    Run(Operation::Broadcast(buffer, bytes, root));
  }
  void Allgather(void* buffer, std::span<const std::size_t> offsets) {
    Run(Operation::Allgather(buffer, offsets));
  }
  void Allgather(void* buffer, std::size_t total, std::size_t begin, std::size_t end) {
    Run(Operation::Allgather(buffer, total, begin, end));
  }
  void Barrier() { Run(Operation::Barrier()); }
  void Gather(const void* data, std::size_t bytes, void* buffer, std::span<const std::size_t> offsets,
              int root) {
    Run(Operation::Gather(data, bytes, buffer, offsets, root));
  }
  void Scatter(const void* buffer, std::span<const std::size_t> offsets, void* data, std::size_t bytes,
               int root) {
    Run(Operation::Scatter(buffer, offsets, data, bytes, root));
  }
  void AllToAll(const void* from, std::span<const std::size_t> sent, void* to,
                std::span<const std::size_t> received) {
    Run(Operation::AllToAll(from, sent, to, received));
  }
  void SendReceive(std::span<const Outbound> sends, std::span<const Inbound> receives) {
    Run(Operation::SendReceive(sends, receives));
  }

  /// Makes a communicator of the ranks that pass the same color, ordered by key, then by rank. Returns
  /// nullptr if `color` is negative. A collective call. A rank leaves the new communicator by destroying it;
  /// the other ranks may continue with calls that do not need this rank.
  virtual std::unique_ptr<Communicator> Split(int color, int key);
  /// Makes a communicator of these ranks, in this order; only these ranks make the call. They find each other
  /// through `members`, whose ranks are the positions in the list. `name` must be unique in the job. A rank
  /// leaves the communicator by destroying it, as with Split.
  virtual std::unique_ptr<Communicator> Group(std::span<const int> ranks, const std::string& name,
                                              OobAllgather& members);
  /// Makes a mailbox for tagged messages between this communicator's ranks, independent of the communicator's
  /// calls. A collective call.
  virtual std::unique_ptr<TaggedMessages> MakeMailbox();
  /// Returns a number that identifies the host of a rank. With the native engine, WARREN_HOST_GROUP can split
  /// a host into several.
  virtual int host_of(int rank) const;
  /// "world"; for a communicator made by Split or Group, a name that is unique in the job.
  virtual std::string name() const { return "world"; }
  /// Translates a rank of this communicator to its rank in the job's communicator.
  virtual int rank_in_job(int rank) const { return rank; }

  /// Whether calls can end with TimedOut.
  virtual bool has_timeouts() const { return false; }
  /// Sets the time for which further calls may wait for a peer that is alive; 0: the value in the settings.
  /// Does nothing unless has_timeouts().
  virtual void SetCallTimeout([[maybe_unused]] std::chrono::milliseconds timeout) {}

  /// Throws LostPeer, as a call would, if a peer is already known to be lost. Does not wait. For callers that
  /// wait for other ranks outside the calls of this class.
  virtual void LookForLosses() {}
  /// Informs the other ranks that this rank gives up after an error, so that they do not wait for it. Only
  /// Finalize and the destructor may follow.
  virtual void GiveUp() noexcept {}

  /// Prints text in the tracker's output, or on this process's standard output if there is no tracker.
  virtual void TrackerPrint(const std::string& text) = 0;
  /// Ends the job for this rank; a collective call. The communicator is unusable afterwards. Does nothing on
  /// communicators made by Split or Group.
  virtual void Finalize() = 0;
};

}  // namespace warren
