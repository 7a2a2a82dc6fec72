// Collectives among the ranks on one host, through the memory they share (host_segment.h).
//
// Small vectors: each rank publishes its contribution in its slot or its stage, then reads and combines the
// contributions of all ranks, which takes one round of waiting. (Graham and Shipman, "MPI support for
// multi-core architectures: optimized shared memory collectives", 2008.)
//
// Large vectors: the vector is split into rounds, and each round into one piece per rank. A round has three
// steps, and several rounds are in flight:
//   input    each rank copies the others' pieces of its vector into its stage
//   combine  each rank combines its own piece from all stages into its vector and its stage
//   output   each rank copies the others' results out of their stages
// The stages stay in the cache, so each rank's vector is read from memory once and written once.
//
// With two ranks, allreduce and reduce combine whole vectors in the second step and have no third step.
// Reduce-scatter copies nothing in the third step. Broadcast, allgather and all-to-all have no second step.
//
// A round uses the next bytes of every stage, at the same offset in each; every rank computes this offset
// from the calls so far. A rank therefore reuses a line only after it has gone through the whole stage; by
// then the line has left the caches of the cores that read it (unless there are more ranks than cores: see
// unit_).
//
// In an all-to-all, a rank knows only the lengths of the slices that it sends and receives. It publishes the
// lengths of the slices that it sends, along with the slices themselves if they are small; all ranks have
// them after one round of waiting. Larger slices follow in rounds, whose number all ranks compute from the
// lengths.
//
// A rank may be several calls and rounds ahead of ranks that only read its data. It checks their progress
// only when this lead is used up, because reading their counters fetches cache lines that they write.
//
// All reductions follow the engine's order (reduce/order.h).
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
/// the same order; `tag` describes the call and is compared with the other members' tags. Errors: LostPeer,
/// TimedOut, Misuse. Not thread-safe.
class HostCollectives {
 public:
  explicit HostCollectives(HostSegment& segment);

  int rank() const { return me_; }
  int size() const { return size_; }
  HostSegment& segment() { return segment_; }

  void set_deadline(Clock::time_point deadline) { waiter_.set_deadline(deadline); }
  /// Sets the observer that is called after each sleep of a waiting rank; none by default.
  void SetWaitObserver(WaitObserver* observer) { waiter_.SetWaitObserver(observer); }

  /// Whether elements of this size fit the rounds of a host with `size` ranks; larger ones need another
  /// algorithm.
  static bool Fits(std::size_t element_bytes, int size);

  void Allreduce(const CallTag& tag, void* buffer, std::size_t count, const Reduction& reduction) {
    Allreduce(tag, buffer, buffer, count, reduction);
  }
  /// Reads `input` and writes the result to `output`, which is either the same buffer or does not overlap it.
  void Allreduce(const CallTag& tag, const void* input, void* output, std::size_t count,
                 const Reduction& reduction);
  void Reduce(const CallTag& tag, void* buffer, std::size_t count, const Reduction& reduction, int root);
  /// `offsets`: size() + 1 offsets in elements.
  void ReduceScatter(const CallTag& tag, void* buffer, std::span<const std::size_t> offsets,
                     const Reduction& reduction);
  /// Like ReduceScatter, for each of several groups of consecutive members: members 0 to ends[0] - 1, ends[0]
  /// to ends[1] - 1, and so on. This member's slices of the groups' results are written to `sums`, one after
  /// the other; the buffer is not changed.
  void ReduceScatterSubtrees(const CallTag& tag, const void* buffer, std::span<const std::size_t> offsets,
                             const Reduction& reduction, std::span<const int> ends, void* sums);
  /// `offsets`: size() + 1 offsets in bytes.
  void Allgather(const CallTag& tag, void* buffer, std::span<const std::size_t> offsets);
  void Broadcast(const CallTag& tag, void* buffer, std::size_t bytes, int root);
  /// Sends bytes [sent[m], sent[m + 1]) of `from` to each member m, and stores the bytes received from m in
  /// [received[m], received[m + 1]) of `to`, which does not overlap `from`. Each member knows only its own
  /// offsets.
  void AllToAll(const CallTag& tag, const void* from, std::span<const std::size_t> sent, void* to,
                std::span<const std::size_t> received);
  void Barrier(const CallTag& tag);

 private:
  using Counter = std::atomic<std::uint64_t> RankLines::*;
  /// A range of bytes of the caller's buffer.
  struct Piece {
    std::size_t offset = 0;
    std::size_t bytes = 0;
  };
  /// A range of bytes in every stage, at the same offset in each, for a round or for staged payloads.
  struct Span {
    std::size_t offset = 0;  ///< from the beginning of a stage
    std::uint64_t end = 0;   ///< the position at which the range ends: see RankLines
  };
  /// The destinations of a reduction's results, one for each group of members. `ends` holds the end of each
  /// group.
  struct Outputs {
    std::span<const int> ends;
    std::byte* first = nullptr;
    std::size_t offset = 0;  ///< the offset in the caller's buffer that corresponds to `first`
    std::size_t stride = 0;  ///< bytes from one group's result to the next
  };
  /// Special values of `receiver`, which is otherwise the local index of the member that receives the result.
  /// kNobody: the result stays with the members that combine it.
  static constexpr int kAllMembers = -1;
  static constexpr int kNobody = -2;

  /// Publishes this call and its payload. `room`: an upper bound for the bytes of any member's payload in
  /// this call, the same on all members.
  void Begin(const CallTag& tag, const void* payload, std::size_t bytes, std::size_t room);
  /// Publishes this call, whose data is exchanged in rounds.
  void BeginLarge(const CallTag& tag);
  Slot& OpenSlot(const CallTag& tag);
  void ShowSlot(Slot& slot);
  Reader ReaderAtFarthest() const;
  void End();
  /// Records that all members have begun this call and so have completed the previous one.
  void EndOfMeeting();
  /// Reserves the next bytes of every stage: `bytes` rounded up to a multiple of unit_. A range that would
  /// extend beyond the end of the stage begins at its start instead.
  Span Claim(std::size_t bytes);
  /// Waits until the member has begun this call and returns its payload. Throws Misuse if its tag differs.
  const std::byte* AwaitPayload(int local);
  void LookForMisuse(int local) const;
  [[noreturn]] void ThrowOtherLength(int local, std::size_t sent, std::size_t expected) const;
  /// Waits until `ready` returns true for the word's value. If measures_ is set, also measures the distance
  /// to the member's core.
  template <typename Ready>
  void AwaitWord(int local, const std::atomic<std::uint64_t>& word, Ready ready);
  void Await(int local, Counter counter, std::uint64_t value);
  void AwaitInput(int local, const Span& span);
  /// Waits until the counters of all other members reach `value`. Returns the lowest counter of all members,
  /// this one included.
  std::uint64_t AwaitAll(Counter counter, std::uint64_t value);
  /// Waits until no member needs the previous contents of the span.
  void AwaitRoom(const Span& span);
  void Publish(Counter counter, std::uint64_t value);

  Outputs OneOutput(std::byte* output) const { return {{&size_, 1}, output, 0, 0}; }
  void CombineInputs(const Outputs& outputs, std::size_t offset, std::size_t count,
                     const Reduction& reduction);
  void ReduceSlices(const CallTag& tag, const std::byte* input, const Outputs& outputs,
                    std::span<const std::size_t> offsets, const Reduction& reduction);
  void CombinePayloads(const void* input, void* output, std::size_t count, const Reduction& reduction);
  /// Runs the three steps of all rounds. Each round uses `bytes` of every stage. `in`, `combine` and `out`
  /// are called with a round's index and its span.
  template <typename In, typename Combine, typename Out>
  void RunThreeSteps(std::size_t rounds, std::size_t bytes, In in, Combine combine, Out out);
  /// Like RunThreeSteps, with only two steps: `in`, then `last`, which combines or copies out. `writes`:
  /// whether this member has input.
  template <typename In, typename Last>
  void RunTwoSteps(std::size_t rounds, std::size_t bytes, bool writes, In in, Last last);
  /// Reduces pieces: `piece_of(round, member)` is the piece that the member combines in that round. No piece
  /// has more than `most` bytes.
  template <typename PieceOf>
  void ReducePieces(const std::byte* input, const Outputs& outputs, const Reduction& reduction,
                    std::size_t rounds, std::size_t most, PieceOf piece_of, int receiver);
  void ReduceOfTwo(const std::byte* input, std::byte* output, std::size_t count, const Reduction& reduction,
                   int receiver);
  void ReduceVector(const std::byte* input, std::byte* output, std::size_t count, const Reduction& reduction,
                    int receiver);

  HostSegment& segment_;
  Waiter waiter_;
  const int me_;
  const int size_;
  const std::size_t piece_bytes_;   ///< maximum length of a rank's piece in a round, a multiple of a line
  const std::size_t most_in_slot_;  ///< length of the largest payload that is put into a slot
  /// Spans are multiples of this. Crowded ranks use a large unit, so that they soon reuse the same lines,
  /// which their core's cache still holds.
  const std::size_t unit_;
  CallTag tag_;
  std::uint64_t call_ = 0;          ///< number of calls begun
  std::uint64_t all_done_ = 0;      ///< number of calls that all members are known to have completed
  std::uint64_t position_ = 0;      ///< end of the last span
  std::uint64_t drained_ = 0;       ///< position up to which all members are known to need nothing more
  std::uint64_t before_ = 0;        ///< position_ when this call began
  Span payload_;                    ///< the bytes reserved for staged payloads in this call, if any
  std::uint64_t first_end_ = 0;     ///< end of this call's first span; 0 if it has none
  std::uint64_t staged_calls_ = 0;  ///< number of calls that reserved bytes for staged payloads
  bool measures_ = false;           ///< whether this call measures the distances to other cores
  Reader readers_ = Reader::kNear;  ///< where the other members run; kFar if any of them is far
  std::vector<std::byte> row_;      ///< in an all-to-all, the payload
  std::vector<const void*> inputs_;
};

}  // namespace warren
