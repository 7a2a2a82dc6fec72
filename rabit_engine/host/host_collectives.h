// Collectives among the ranks of one host, through the memory they share (host_segment.h).
//
// Small: every rank writes its contribution into its slot, every rank reads all slots and combines them: one
// round of waiting. (Graham and Shipman, "MPI support for multi-core architectures: optimized shared memory
// collectives", 2008.)
//
// Large: the vector is cut into rounds, each round into one piece a rank. Three stages, several rounds in
// flight:
//   input    each rank copies the others' pieces of its vector into its entry
//   combine  each rank combines its own piece of all entries, into its vector and into its entry
//   output   each rank copies the others' results out of their entries
// The entries stay in the cache, so that memory sees each rank's vector read once and written once.
//
// Two ranks combine the other's whole vector in the second stage, and need no third. Broadcast, allgather and
// all-to-all need no second.
//
// Of an all-to-all a rank knows only what it sends and receives. Its slot says how long each of its slices
// is, and has them behind that if they fit: small slices take one round of waiting, and of the others all
// know how many rounds they take.
//
// A rank may be some calls and rounds ahead of those that only read what it wrote. How far they are is asked
// when that is used up, and not each time: their counters are on lines that they write.
//
// All of them reduce in the engine's order (reduce/order.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rabit_engine/host/host_segment.h"
#include "rabit_engine/host/waiter.h"
#include "rabit_engine/reduce/reduction.h"

namespace warren {

/// The collectives of one host. Ranks and roots are local indices here. All members make the same calls in
/// the same order; `tag` describes the call and is compared with the others'. Errors: LostPeer, TimedOut,
/// Misuse. Not thread safe.
class HostCollectives {
 public:
  explicit HostCollectives(HostSegment& segment);

  int rank() const { return me_; }
  int size() const { return size_; }
  HostSegment& segment() { return segment_; }

  void set_deadline(Clock::time_point deadline) { waiter_.set_deadline(deadline); }
  /// Is told while this rank sleeps; nobody by default.
  void SetWaitObserver(WaitObserver* observer) { waiter_.SetWaitObserver(observer); }

  /// Elements of this size fit the entries of a host with `size` ranks; larger ones need another algorithm.
  static bool Fits(std::size_t element_bytes, int size);

  void Allreduce(const CallTag& tag, void* buffer, std::size_t count, const Reduction& reduction) {
    Allreduce(tag, buffer, buffer, count, reduction);
  }
  /// The same from one buffer, which stays as it is, into another that does not overlap it.
  void Allreduce(const CallTag& tag, const void* input, void* output, std::size_t count,
                 const Reduction& reduction);
  void Reduce(const CallTag& tag, void* buffer, std::size_t count, const Reduction& reduction, int root);
  /// size() + 1 offsets in elements.
  void ReduceScatter(const CallTag& tag, void* buffer, std::span<const std::size_t> offsets,
                     const Reduction& reduction);
  /// The same for each of several groups of consecutive members: those before ends[0], from there to ends[1],
  /// and so on. The member's slice of each group's result goes into `sums`, one after the other; the buffer
  /// stays as it is.
  void ReduceScatterSubtrees(const CallTag& tag, const void* buffer, std::span<const std::size_t> offsets,
                             const Reduction& reduction, std::span<const int> ends, void* sums);
  /// size() + 1 offsets in bytes.
  void Allgather(const CallTag& tag, void* buffer, std::span<const std::size_t> offsets);
  void Broadcast(const CallTag& tag, void* buffer, std::size_t bytes, int root);
  /// Member m gets bytes [sent[m], sent[m + 1]) of `from`, and its own for this one come to [received[m],
  /// received[m + 1]) of `to`, which does not overlap it. A member knows its own offsets only.
  void AllToAll(const CallTag& tag, const void* from, std::span<const std::size_t> sent, void* to,
                std::span<const std::size_t> received);
  void Barrier(const CallTag& tag);

 private:
  using Counter = std::atomic<std::uint64_t> RankLines::*;
  /// A run of bytes of the caller's buffer.
  struct Piece {
    std::size_t offset = 0;
    std::size_t bytes = 0;
  };
  /// Where the results of a reduction go: one of each group of members, which end at `ends`.
  struct Outputs {
    std::span<const int> ends;
    std::byte* first = nullptr;
    std::size_t offset = 0;  ///< of the first one's begin in the caller's buffer
    std::size_t stride = 0;  ///< bytes from a group's result to the next one's
  };
  /// Which members get a result, and so copy it out.
  static constexpr int kAllMembers = -1;
  static constexpr int kNobody = -2;

  void Begin(const CallTag& tag, const void* payload, std::size_t bytes);
  void End();
  const Slot& AwaitSlot(int local);
  void LookForMisuse(int local) const;
  [[noreturn]] void ThrowOtherLength(int local, std::size_t sent, std::size_t expected) const;
  void Await(int local, Counter counter, std::uint64_t value);
  void AwaitInput(int local, std::uint64_t value);
  /// Returns the least that it saw of all members, this one too.
  std::uint64_t AwaitAll(Counter counter, std::uint64_t value);
  /// Until all members are done with what the entries held before the round of this number.
  void AwaitEntry(std::uint64_t number);
  void Publish(Counter counter, std::uint64_t value);

  Outputs OneOutput(std::byte* output) const { return {{&size_, 1}, output, 0, 0}; }
  void CombineInputs(const Outputs& outputs, std::size_t offset, std::size_t count,
                     const Reduction& reduction);
  void ReduceSlices(const CallTag& tag, const std::byte* input, const Outputs& outputs,
                    std::span<const std::size_t> offsets, const Reduction& reduction);
  void CombineSlots(const void* input, void* output, std::size_t count, const Reduction& reduction);
  /// The three stages. `in`, `combine` and `out` are called with the round and its number since the start.
  template <typename In, typename Combine, typename Out>
  void RunThreeStages(std::size_t rounds, In in, Combine combine, Out out);
  /// Two of them, `last` being combine or out. Members that do not write have no input.
  template <typename In, typename Last>
  void RunTwoStages(std::size_t rounds, bool writes, In in, Last last);
  /// Reduction of pieces: `piece_of(round, member)` is what the member combines in that round.
  template <typename PieceOf>
  void ReducePieces(const std::byte* input, const Outputs& outputs, const Reduction& reduction,
                    std::size_t rounds, PieceOf piece_of, int receiver);
  void ReduceInOneStage(const std::byte* input, std::byte* output, std::size_t count,
                        const Reduction& reduction, int receiver);
  void ReduceVector(const std::byte* input, std::byte* output, std::size_t count, const Reduction& reduction,
                    int receiver);

  HostSegment& segment_;
  Waiter waiter_;
  const int me_;
  const int size_;
  const std::size_t piece_bytes_;  ///< of one rank in one round, a multiple of the cache line
  CallTag tag_;
  std::uint64_t call_ = 0;      ///< calls begun
  std::uint64_t all_done_ = 0;  ///< calls that all members are known to have completed
  std::uint64_t round_ = 0;     ///< rounds of all large calls so far
  std::uint64_t drained_ = 0;   ///< rounds that all members are known to need no longer
  std::vector<std::byte> row_;  ///< of an all-to-all: what goes into the slot
  std::vector<const void*> inputs_;
};

}  // namespace warren
