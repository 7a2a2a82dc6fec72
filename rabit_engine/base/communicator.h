// The one engine behind every face (rabit C++, rabit C, the XGBoost seam): rank, size and the collectives.
//
// All ranks of a communicator make the same calls in the same order. Buffers are given in place where nothing
// else is said; counts may be 0; pointers need not be aligned. Errors: LostPeer, TimedOut, Misuse (error.h).
// After an error the communicator can only be destroyed. Not thread safe, but threads may use several
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
/// One from another rank: it must be as long as was sent.
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
  /// True when there is somebody else to talk to or a tracker that started this process.
  virtual bool is_distributed() const = 0;
  /// The name of this host.
  virtual std::string host() const = 0;
  /// How many ranks of this host come before this one.
  virtual int local_rank() const = 0;

  /// Every rank's buffer becomes the reduction over all ranks' buffers of `count` elements.
  virtual void Allreduce(void* buffer, std::size_t count, const Reduction& reduction) = 0;
  /// Every rank's buffer becomes the root's.
  virtual void Broadcast(void* buffer, std::size_t bytes, int root) = 0;
  /// `buffer` is made of one slice a rank, in rank order: rank r's is [offsets[r], offsets[r + 1]) in bytes,
  /// world_size() + 1 offsets, the same on all ranks. Each rank brings its own slice and gets the others'.
  virtual void Allgather(void* buffer, std::span<const std::size_t> offsets) = 0;
  /// The same when a rank knows only its own slice [begin, end) of `total` bytes; slices must join.
  virtual void Allgather(void* buffer, std::size_t total, std::size_t begin, std::size_t end);
  /// Like Allreduce, but only elements [offsets[rank], offsets[rank + 1]) of the buffer hold the result
  /// afterwards; the rest of the buffer is left undefined.
  virtual void ReduceScatter(void* buffer, std::span<const std::size_t> offsets,
                             const Reduction& reduction) = 0;
  /// Like Allreduce, but only the root's buffer holds the result; the others' is left undefined.
  virtual void Reduce(void* buffer, std::size_t count, const Reduction& reduction, int root) = 0;
  /// Returns when all ranks have called it.
  virtual void Barrier() = 0;

  /// The root gets a slice of every rank: rank r's goes to [offsets[r], offsets[r + 1]) of its buffer, in
  /// bytes; its own, too. The others bring `bytes`; buffer and offsets are the root's alone.
  virtual void Gather(const void* data, std::size_t bytes, void* buffer, std::span<const std::size_t> offsets,
                      int root);
  /// The reverse: each rank gets its slice of the root's buffer, as `bytes` of data.
  virtual void Scatter(const void* buffer, std::span<const std::size_t> offsets, void* data,
                       std::size_t bytes, int root);
  /// Rank r gets bytes [sent[r], sent[r + 1]) of `from`, and what it has for this rank comes to
  /// [received[r], received[r + 1]) of `to`; the own slice, too. The buffers do not overlap.
  virtual void AllToAll(const void* from, std::span<const std::size_t> sent, void* to,
                        std::span<const std::size_t> received);
  /// Messages between ranks, all at once; returns when they have arrived, or have been taken for sending. Two
  /// ranks make the calls that concern both in the same order, collectives between them included. Messages
  /// from one rank to another keep their order.
  virtual void SendReceive(std::span<const Outbound> sends, std::span<const Inbound> receives);

  /// Makes a communicator of the ranks that give the same color, in the order of their keys and, where these
  /// are equal, of their ranks here; none (nullptr) for a negative color. All ranks call it. Whoever destroys
  /// one leaves it: others may go on as long as they need nothing of this rank.
  virtual std::unique_ptr<Communicator> Split(int color, int key);
  /// Makes a communicator of these ranks, in this order, which call it, while others need not: they tell each
  /// other by `members`, which numbers them by their places in the list. `name` is one that only it has in
  /// the job. Left as one of Split.
  virtual std::unique_ptr<Communicator> Group(std::span<const int> ranks, const std::string& name,
                                              OobAllgather& members);
  /// For messages with tags among the ranks here, beside the calls of this communicator. All ranks call it.
  virtual std::unique_ptr<TaggedMessages> MakeMailbox();
  /// Equal for ranks on one host, where WARREN_HOST_GROUP can make several hosts of one.
  virtual int host_of(int rank) const;
  /// "world", or for one made by Split or Group a name that only this one has in the job.
  virtual std::string name() const { return "world"; }
  /// What a rank here is in the communicator of the whole job.
  virtual int rank_in_job(int rank) const { return rank; }

  /// Whether calls can end with TimedOut.
  virtual bool has_timeouts() const { return false; }
  /// How long each call from the next one on may wait for a peer that lives, instead of what the settings
  /// say; 0: as they say. To be called where has_timeouts().
  virtual void SetCallTimeout([[maybe_unused]] std::chrono::milliseconds timeout) {}

  /// Throws LostPeer when a peer is known to be gone by now, as a call would. Does not wait. For those who
  /// wait for other ranks by other means.
  virtual void LookForLosses() {}
  /// Tells the others that this rank gives up after an error, so that they do not wait for it. Only Finalize
  /// and the destructor may follow.
  virtual void GiveUp() noexcept {}

  /// Shows text to the user who watches the job.
  virtual void TrackerPrint(const std::string& text) = 0;
  /// Ends the job for this rank: all ranks call it when they are done. The communicator is of no use after.
  virtual void Finalize() = 0;
};

}  // namespace warren
