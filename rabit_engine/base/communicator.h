// The one engine behind every face (rabit C++, rabit C, the XGBoost seam): rank, size and the collectives.
//
// All ranks of a world make the same calls in the same order. Buffers are given in place; counts may be 0;
// pointers need not be aligned. Errors: LostPeer, TimedOut, Misuse (error.h). After an error the
// communicator can only be destroyed. Not thread safe.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace warren {

class Reduction;

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
