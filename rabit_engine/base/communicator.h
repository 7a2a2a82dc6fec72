// The interface of every engine behind the APIs (rabit C++, rabit C, the XGBoost seam): rank, size and the
// collectives.
//
// All ranks of a communicator make the same calls in the same order. Buffers are used in place unless stated
// otherwise; counts may be 0; pointers need not be aligned. Errors: LostPeer, TimedOut, Misuse (error.h).
// After an error the communicator can only be destroyed. Not thread-safe, but threads may use several
// communicators at once.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "rabit_engine/base/tagged_messages.h"

namespace warren {

class OobAllgather;
class Reduction;

/// A message to another rank, or to the sender itself.
struct Outbound {
  int to = -1;
  const void* data = nullptr;
  std::size_t bytes = 0;
};
/// A message from another rank; `bytes` must be the length that was sent.
struct Inbound {
  int from = -1;
  void* data = nullptr;
  std::size_t bytes = 0;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  /// Whether there are other ranks, or a tracker that started this process.
  virtual bool is_distributed() const = 0;
  /// The name of this host.
  virtual std::string host() const = 0;
  /// The number of ranks on this host that are lower than this one.
  virtual int local_rank() const = 0;

  /// Every rank's buffer becomes the reduction of all ranks' buffers of `count` elements.
  virtual void Allreduce(void* buffer, std::size_t count, const Reduction& reduction) = 0;
  /// Copies the root's buffer to all ranks.
  virtual void Broadcast(void* buffer, std::size_t bytes, int root) = 0;
  /// `buffer` consists of one slice per rank, in rank order: rank r's is [offsets[r], offsets[r + 1]) in
  /// bytes, with world_size() + 1 offsets, the same on all ranks. Each rank contributes its own slice and
  /// gets the others'.
  virtual void Allgather(void* buffer, std::span<const std::size_t> offsets) = 0;
  /// For ranks that know only their own slice [begin, end) of `total` bytes; the slices must be contiguous.
  virtual void Allgather(void* buffer, std::size_t total, std::size_t begin, std::size_t end);
  /// Like Allreduce, but afterwards only elements [offsets[rank], offsets[rank + 1]) of the buffer hold the
  /// result; the rest is undefined.
  virtual void ReduceScatter(void* buffer, std::span<const std::size_t> offsets,
                             const Reduction& reduction) = 0;
  /// Like Allreduce, but only the root's buffer holds the result; the other ranks' are undefined.
  virtual void Reduce(void* buffer, std::size_t count, const Reduction& reduction, int root) = 0;
  /// Returns when all ranks have called it.
  virtual void Barrier() = 0;

  /// The root gets a slice of every rank, including its own: rank r's goes to [offsets[r], offsets[r + 1]) of
  /// its buffer, in bytes. Each rank contributes `bytes`; buffer and offsets are used at the root only.
  virtual void Gather(const void* data, std::size_t bytes, void* buffer, std::span<const std::size_t> offsets,
                      int root);
  /// The reverse of Gather: each rank gets its slice of the root's buffer, `bytes` of data.
  virtual void Scatter(const void* buffer, std::span<const std::size_t> offsets, void* data,
                       std::size_t bytes, int root);
  /// Sends bytes [sent[r], sent[r + 1]) of `from` to rank r, and receives what r sends into [received[r],
  /// received[r + 1]) of `to`; this rank's own slice is copied, too. The buffers do not overlap.
  virtual void AllToAll(const void* from, std::span<const std::size_t> sent, void* to,
                        std::span<const std::size_t> received);
  /// Sends and receives several messages at once; returns when all have arrived or been taken for sending.
  /// Two ranks make all calls that involve both, collectives included, in the same order. Messages from one
  /// rank to another keep their order.
  virtual void SendReceive(std::span<const Outbound> sends, std::span<const Inbound> receives);

  /// Makes a communicator of the ranks that give the same color, ordered by key, then by rank; nullptr for a
  /// negative color. All ranks call it. A rank leaves the new communicator by destroying it; the others may
  /// continue with calls that do not need this rank.
  virtual std::unique_ptr<Communicator> Split(int color, int key);
  /// Makes a communicator of these ranks, in this order; only they call it. They find each other by
  /// `members`, whose ranks are the positions in the list. `name` must be unique in the job. Left in the same
  /// way as one made by Split.
  virtual std::unique_ptr<Communicator> Group(std::span<const int> ranks, const std::string& name,
                                              OobAllgather& members);
  /// For messages with tags between these ranks, independent of this communicator's calls. All ranks call it.
  virtual std::unique_ptr<TaggedMessages> MakeMailbox();
  /// Equal for ranks on the same host (WARREN_HOST_GROUP can split a host into several).
  virtual int host_of(int rank) const;
  /// "world"; for a communicator made by Split or Group, a name that is unique in the job.
  virtual std::string name() const { return "world"; }
  /// Translates a rank of this communicator to its rank in the job's communicator.
  virtual int rank_in_job(int rank) const { return rank; }

  /// Whether calls can end with TimedOut.
  virtual bool has_timeouts() const { return false; }
  /// Sets how long further calls may wait for a peer that is alive, instead of the settings' value; 0: the
  /// settings' value. Requires has_timeouts().
  virtual void SetCallTimeout([[maybe_unused]] std::chrono::milliseconds timeout) {}

  /// Throws LostPeer if a peer is already known to be gone, as a call would. Does not wait. For callers that
  /// wait for other ranks by other means.
  virtual void LookForLosses() {}
  /// Tells the other ranks that this rank gives up after an error, so that they do not wait for it. Only
  /// Finalize and the destructor may follow.
  virtual void GiveUp() noexcept {}

  /// Shows text to people who watch the job.
  virtual void TrackerPrint(const std::string& text) = 0;
  /// Ends the job for this rank; all ranks call it when they are done. The communicator is unusable
  /// afterwards.
  virtual void Finalize() = 0;
};

}  // namespace warren
