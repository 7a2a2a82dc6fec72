#include "rabit_engine/host/host_collectives.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "rabit_engine/base/error.h"
#include "rabit_engine/host/shared_copy.h"

namespace warren {
namespace {

/// With up to this many ranks, each rank reads the others' whole vectors: no more cache lines cross between
/// cores than in three steps, and there is one fewer wait.
constexpr int kRanksWithoutPieces = 2;
/// The bytes per round of a reduction of two ranks: as many as possible while the data in flight fits the L2
/// cache. Vectors that fit in two rounds of kLongOfTwoBytes use these longer rounds.
constexpr std::size_t kOfTwoBytes = kMostRoundBytes / 2;
constexpr std::size_t kLongOfTwoBytes = kMostRoundBytes;

/// The largest vector that each rank publishes whole. For larger vectors, reading the vectors of all ranks
/// costs more than two additional rounds of waiting (docs/notes/engine-speed.md).
constexpr std::size_t kSmallBytes = std::size_t{16} << 10;

/// The largest payload that ranks put into their slots if they are not crowded. Larger payloads are read
/// faster from the stages, whose lines are reused less soon than those of the slots.
constexpr std::size_t kMostInSlot = std::size_t{1} << 10;

/// Distances to other cores are measured in one of this many calls that reserve bytes for staged payloads,
/// and in every call that publishes no payload because it runs in rounds.
constexpr std::uint64_t kCallsPerMeasurement = 8;

/// The size of the blocks that are combined and then copied into the stage.
constexpr std::size_t kCombineBytes = std::size_t{8} << 10;

std::size_t DivideRoundingUp(std::size_t value, std::size_t by) {
  return (value + by - 1) / by;
}

std::size_t RoundUpToLine(std::size_t bytes) {
  return DivideRoundingUp(bytes, kCacheLine) * kCacheLine;
}

/// From this many ranks on, the rounds of a reduction are half as long: otherwise the data that all ranks
/// have in flight would not stay in the cache. With fewer ranks, long rounds need half the waits.
constexpr int kManyRanks = 9;

std::size_t PieceBytes(int size) {
  const std::size_t round_bytes = size < kManyRanks ? kMostRoundBytes : kMostRoundBytes / 2;
  return round_bytes / static_cast<std::size_t>(size) / kCacheLine * kCacheLine;
}

/// Results are copied with non-temporal stores once the output of all members fills about half of a
/// last-level cache and so would not stay there: such stores do not read the destination before they
/// overwrite it. The limit is higher if the result replaces the input, which was read a few rounds before and
/// is still in some cache.
constexpr std::size_t kCachedBytes = std::size_t{16} << 20;
constexpr std::size_t kCachedInputBytes = std::size_t{64} << 20;

void CopyOut(void* to, const void* from, std::size_t bytes, bool past_caches) {
  past_caches ? CopyPastCaches(to, from, bytes) : static_cast<void>(std::memcpy(to, from, bytes));
}

/// Returns the bytes of one round of a broadcast. With a single reader, which copies out while the root
/// copies in the next round, only the first copy in and the last copy out do not overlap another, so rounds
/// are short. With more readers each round costs more waits, so rounds are long.
std::size_t BroadcastBytes(int size, std::size_t bytes) {
  constexpr std::size_t kRounds = 16;
  constexpr std::size_t kLeast = std::size_t{16} << 10;
  constexpr std::size_t kMost = std::size_t{64} << 10;
  return size == 2 ? std::clamp(DivideRoundingUp(bytes, kRounds * kCacheLine) * kCacheLine, kLeast, kMost)
                   : kMostRoundBytes;
}

}  // namespace

HostCollectives::HostCollectives(HostSegment& segment)
    : segment_(segment),
      waiter_(segment),
      me_(segment.local_index()),
      size_(segment.local_size()),
      piece_bytes_(PieceBytes(size_)),
      most_in_slot_(segment.cores().is_crowded ? kSlotPayloadBytes : kMostInSlot),
      unit_(segment.cores().is_crowded ? kMostRoundBytes : kCacheLine),
      inputs_(static_cast<std::size_t>(size_)) {}

bool HostCollectives::Fits(std::size_t element_bytes, int size) {
  return element_bytes <= PieceBytes(std::min(size, kMaxLocalRanks));
}

// --- meeting the others ---

void HostCollectives::Begin(const CallTag& tag, const void* payload, std::size_t bytes, std::size_t room) {
  Slot& slot = OpenSlot(tag);
  const bool has_stage = room > most_in_slot_;
  measures_ = has_stage && ++staged_calls_ % kCallsPerMeasurement == 0;
  if (has_stage) {
    readers_ = ReaderAtFarthest();
    payload_ = Claim(room);
  }
  slot.is_staged = bytes > most_in_slot_;
  if (slot.is_staged) {
    AwaitRoom(payload_);
    CopyToShared(segment_.stage(me_) + payload_.offset, payload, bytes, readers_);
  } else if (bytes > 0) {
    std::memcpy(slot.payload, payload, bytes);
  }
  ShowSlot(slot);
}

void HostCollectives::BeginLarge(const CallTag& tag) {
  Slot& slot = OpenSlot(tag);
  measures_ = true;
  readers_ = ReaderAtFarthest();
  slot.is_staged = false;
  ShowSlot(slot);
}

Slot& HostCollectives::OpenSlot(const CallTag& tag) {
  tag_ = tag;
  ++call_;
  before_ = position_;
  first_end_ = 0;
  // The slot still holds an earlier call, which all members must have completed.
  if (all_done_ + kSlots < call_) all_done_ = AwaitAll(&RankLines::completed, call_ - kSlots);
  Slot& slot = segment_.slot(me_, call_);
  slot.tag = tag;
  return slot;
}

void HostCollectives::ShowSlot(Slot& slot) {
  slot.sequence.store(call_, std::memory_order_seq_cst);
  segment_.RingBell();
}

Reader HostCollectives::ReaderAtFarthest() const {
  for (int local = 0; local < size_; ++local) {
    if (local != me_ && segment_.ReaderAt(local) == Reader::kFar) return Reader::kFar;
  }
  return segment_.cores().is_crowded ? Reader::kCrowded : Reader::kNear;
}

void HostCollectives::End() {
  RankLines& lines = segment_.lines(me_);
  if (position_ != before_) lines.output.store(position_, std::memory_order_release);
  lines.completed.store(call_, std::memory_order_seq_cst);
  segment_.RingBell();
}

void HostCollectives::EndOfMeeting() {
  // A rank that has begun this call has completed the previous one.
  all_done_ = call_ - 1;
  drained_ = std::max(drained_, before_);
}

HostCollectives::Span HostCollectives::Claim(std::size_t bytes) {
  const std::size_t stage = segment_.stage_bytes();
  bytes = DivideRoundingUp(bytes, unit_) * unit_;
  const std::size_t left = stage - position_ % stage;
  if (left < bytes) position_ += left;
  const Span span{position_ % stage, position_ + bytes};
  position_ = span.end;
  if (first_end_ == 0) first_end_ = span.end;
  return span;
}

const std::byte* HostCollectives::AwaitPayload(int local) {
  const Slot& slot = segment_.slot(local, call_);
  AwaitWord(local, slot.sequence, [this](std::uint64_t sequence) { return sequence == call_; });
  if (std::memcmp(&slot.tag, &tag_, sizeof(tag_)) != 0) [[unlikely]] {
    LookForMisuse(local);
  }
  return slot.is_staged ? segment_.stage(local) + payload_.offset : slot.payload;
}

void HostCollectives::LookForMisuse(int local) const {
  const Slot& slot = segment_.slot(local, call_);
  if (slot.sequence.load(std::memory_order_acquire) != call_ || slot.tag == tag_) return;
  segment_.ThrowIfCallsDiffer(local, tag_.sequence);
  ThrowDifferentCalls(segment_.rank(), tag_, segment_.ranks()[local], slot.tag);
}

template <typename Ready>
void HostCollectives::AwaitWord(int local, const std::atomic<std::uint64_t>& word, Ready ready) {
  if (!measures_) {
    return waiter_.Until(local, [&] { return ready(word.load(std::memory_order_acquire)); });
  }
  std::uint64_t ticks = 0;
  waiter_.Until(local, [&] {
    const std::uint64_t before = ReadTicks();
    const std::uint64_t value = word.load(std::memory_order_acquire);
    ticks = ReadTicks() - before;
    return ready(value);
  });
  segment_.NoteRead(local, NanosecondsOf(ticks));
}

void HostCollectives::Await(int local, Counter counter, std::uint64_t value) {
  const std::atomic<std::uint64_t>& word = segment_.lines(local).*counter;
  waiter_.Until(local, [&] { return word.load(std::memory_order_acquire) >= value; });
}

/// Waits for a member's input. In the first round, waits for its slot first, because a member that makes a
/// different call may never reach the end of this span.
void HostCollectives::AwaitInput(int local, const Span& span) {
  if (span.end == first_end_) AwaitPayload(local);
  Await(local, &RankLines::input, span.end);
}

std::uint64_t HostCollectives::AwaitAll(Counter counter, std::uint64_t value) {
  std::uint64_t least = (segment_.lines(me_).*counter).load(std::memory_order_relaxed);
  for (int turn = 1; turn < size_; ++turn) {
    const int local = (me_ + turn) % size_;
    Await(local, counter, value);
    least = std::min(least, (segment_.lines(local).*counter).load(std::memory_order_acquire));
  }
  return least;
}

void HostCollectives::AwaitRoom(const Span& span) {
  const std::size_t stage = segment_.stage_bytes();
  if (span.end > drained_ + stage) drained_ = AwaitAll(&RankLines::output, span.end - stage);
}

void HostCollectives::Publish(Counter counter, std::uint64_t value) {
  (segment_.lines(me_).*counter).store(value, std::memory_order_seq_cst);
  segment_.RingBell();
}

// --- small ---

void HostCollectives::CombinePayloads(const void* input, void* output, std::size_t count,
                                      const Reduction& reduction) {
  for (int local = 0; local < size_; ++local) {
    inputs_[local] = local == me_ ? input : AwaitPayload(local);
  }
  reduction.CombineAll(output, inputs_, count);
}

void HostCollectives::Allreduce(const CallTag& tag, const void* input, void* output, std::size_t count,
                                const Reduction& reduction) {
  const std::size_t bytes = count * reduction.element_bytes();
  if (bytes <= kSmallBytes) {
    Begin(tag, input, bytes, bytes);
    CombinePayloads(input, output, count, reduction);
  } else {
    BeginLarge(tag);
    ReduceVector(static_cast<const std::byte*>(input), static_cast<std::byte*>(output), count, reduction,
                 kAllMembers);
  }
  EndOfMeeting();
  End();
}

void HostCollectives::Reduce(const CallTag& tag, void* buffer, std::size_t count, const Reduction& reduction,
                             int root) {
  const std::size_t bytes = count * reduction.element_bytes();
  if (bytes <= kSmallBytes) {
    Begin(tag, buffer, bytes, bytes);
    if (me_ == root) CombinePayloads(buffer, buffer, count, reduction);
  } else {
    BeginLarge(tag);
    ReduceVector(static_cast<std::byte*>(buffer), static_cast<std::byte*>(buffer), count, reduction, root);
  }
  End();
}

void HostCollectives::Barrier(const CallTag& tag) {
  Begin(tag, nullptr, 0, 1);
  for (int local = 0; local < size_; ++local) AwaitPayload(local);
  EndOfMeeting();
  End();
}

// --- large: through the stages, in rounds ---

template <typename In, typename Combine, typename Out>
void HostCollectives::RunThreeSteps(std::size_t rounds, std::size_t bytes, In in, Combine combine, Out out) {
  std::array<Span, 3> spans;
  for (std::size_t turn = 0; turn < rounds + 2; ++turn) {
    if (turn < rounds) {
      const Span& span = spans[turn % 3] = Claim(bytes);
      AwaitRoom(span);
      in(turn, span);
      Publish(&RankLines::input, span.end);
    }
    if (turn >= 1 && turn - 1 < rounds) {
      const Span& span = spans[(turn - 1) % 3];
      combine(turn - 1, span);
      Publish(&RankLines::result, span.end);
    }
    if (turn >= 2) {
      const Span& span = spans[(turn - 2) % 3];
      out(turn - 2, span);
      Publish(&RankLines::output, span.end);
    }
  }
}

template <typename In, typename Last>
void HostCollectives::RunTwoSteps(std::size_t rounds, std::size_t bytes, bool writes, In in, Last last) {
  std::array<Span, 2> spans;
  for (std::size_t turn = 0; turn < rounds + 1; ++turn) {
    if (turn < rounds) spans[turn % 2] = Claim(bytes);
    if (writes && turn < rounds) {
      const Span& span = spans[turn % 2];
      AwaitRoom(span);
      in(turn, span);
      Publish(&RankLines::input, span.end);
    }
    if (turn >= 1) {
      const Span& span = spans[(turn - 1) % 2];
      last(turn - 1, span);
      Publish(&RankLines::output, span.end);
    }
  }
}

void HostCollectives::CombineInputs(const Outputs& outputs, std::size_t offset, std::size_t count,
                                    const Reduction& reduction) {
  std::byte* result = outputs.first + (offset - outputs.offset);
  std::size_t begin = 0;
  for (const int group_end : outputs.ends) {
    const auto end = static_cast<std::size_t>(group_end);
    reduction.CombineAll(result, std::span(inputs_).subspan(begin, end - begin), count);
    result += outputs.stride;
    begin = end;
  }
}

template <typename PieceOf>
void HostCollectives::ReducePieces(const std::byte* input, const Outputs& outputs, const Reduction& reduction,
                                   std::size_t rounds, std::size_t most, PieceOf piece_of, int receiver) {
  const std::size_t stride = RoundUpToLine(most);
  const bool receives = receiver == kAllMembers || receiver == me_;
  const std::size_t members = static_cast<std::size_t>(size_);
  const bool in_place = outputs.first == input;
  // The product is the number of bytes that all members write, rounded up to whole rounds.
  const bool past_caches =
      rounds * stride * members * members >= (in_place ? kCachedInputBytes : kCachedBytes);
  const auto in = [&](std::size_t round, const Span& span) {
    std::byte* const own = segment_.stage(me_) + span.offset;
    for (int local = 0; local < size_; ++local) {
      const Piece piece = piece_of(round, local);
      if (local == me_ || piece.bytes == 0) continue;
      CopyToShared(own + local * stride, input + piece.offset, piece.bytes, segment_.ReaderAt(local));
    }
  };
  const auto combine = [&](std::size_t round, const Span& span) {
    const Piece piece = piece_of(round, me_);
    const std::size_t place = span.offset + me_ * stride;
    for (int turn = 1; turn < size_; ++turn) AwaitInput((me_ + turn) % size_, span);
    if (piece.bytes == 0) return;
    for (int local = 0; local < size_; ++local) inputs_[local] = segment_.stage(local) + place;
    inputs_[me_] = input + piece.offset;
    // Combines in blocks that stay in the first-level cache until they are copied into the stage.
    const std::size_t block =
        std::max<std::size_t>(1, kCombineBytes / reduction.element_bytes()) * reduction.element_bytes();
    for (std::size_t done = 0; done < piece.bytes; done += block) {
      const std::size_t now = std::min(block, piece.bytes - done);
      CombineInputs(outputs, piece.offset + done, now / reduction.element_bytes(), reduction);
      // This rank's own input is not in its stage, so the place there is free for the result.
      if (receiver != kNobody) {
        CopyToShared(segment_.stage(me_) + place + done, outputs.first + piece.offset + done, now, readers_);
      }
      for (const void*& from : inputs_) from = static_cast<const std::byte*>(from) + now;
    }
  };
  const auto out = [&](std::size_t round, const Span& span) {
    if (!receives) return;
    for (int turn = 1; turn < size_; ++turn) {
      const int local = (me_ + turn) % size_;
      const Piece piece = piece_of(round, local);
      if (piece.bytes == 0) continue;
      Await(local, &RankLines::result, span.end);
      CopyOut(outputs.first + piece.offset, segment_.stage(local) + span.offset + local * stride, piece.bytes,
              past_caches);
    }
  };
  RunThreeSteps(rounds, stride * members, in, combine, out);
}

void HostCollectives::ReduceOfTwo(const std::byte* input, std::byte* output, std::size_t count,
                                  const Reduction& reduction, int receiver) {
  const std::size_t element = reduction.element_bytes();
  const std::size_t bytes = count * element;
  const std::size_t most = bytes <= 2 * kLongOfTwoBytes ? kLongOfTwoBytes : kOfTwoBytes;
  const std::size_t per_round = DivideRoundingUp(count, DivideRoundingUp(count, most / element));
  const std::size_t rounds = DivideRoundingUp(count, per_round);
  const auto piece_of = [=](std::size_t round) {
    const std::size_t begin = std::min(count, round * per_round);
    return Piece{begin * element, (std::min(count, begin + per_round) - begin) * element};
  };
  const auto in = [&](std::size_t round, const Span& span) {
    const Piece piece = piece_of(round);
    CopyToShared(segment_.stage(me_) + span.offset, input + piece.offset, piece.bytes, readers_);
  };
  const auto combine = [&](std::size_t round, const Span& span) {
    if (receiver != kAllMembers && receiver != me_) return;
    const Piece piece = piece_of(round);
    for (int turn = 1; turn < size_; ++turn) AwaitInput((me_ + turn) % size_, span);
    for (int local = 0; local < size_; ++local) inputs_[local] = segment_.stage(local) + span.offset;
    inputs_[me_] = input + piece.offset;
    reduction.CombineAll(output + piece.offset, inputs_, piece.bytes / element);
  };
  RunTwoSteps(rounds, per_round * element, true, in, combine);
}

void HostCollectives::ReduceVector(const std::byte* input, std::byte* output, std::size_t count,
                                   const Reduction& reduction, int receiver) {
  const std::size_t element = reduction.element_bytes();
  const std::size_t members = static_cast<std::size_t>(size_);
  if (size_ <= kRanksWithoutPieces) {
    ReduceOfTwo(input, output, count, reduction, receiver);
    return;
  }
  // The rounds have equal lengths: a short last one would cost as much waiting as the others.
  const std::size_t most = piece_bytes_ / element * members;
  const std::size_t rounds = DivideRoundingUp(count, most);
  const std::size_t per_round = DivideRoundingUp(count, rounds);
  // Within a round, pieces begin at multiples of the cache line if the element size allows it.
  const std::size_t granule = kCacheLine % element == 0 ? kCacheLine / element : 1;
  const auto share_of = [=](std::size_t length) {
    return std::min(DivideRoundingUp(DivideRoundingUp(length, members), granule) * granule, most / members);
  };
  const auto piece_of = [=](std::size_t round, int local) {
    const std::size_t begin = round * per_round;
    const std::size_t length = std::min(per_round, count - begin);
    const std::size_t share = share_of(length);
    const std::size_t from = std::min(length, local * share);
    const std::size_t to = local + 1 == static_cast<int>(members) ? length : std::min(length, from + share);
    return Piece{(begin + from) * element, (to - from) * element};
  };
  // The last member's piece is the rest of the round.
  const std::size_t last = per_round - std::min(per_round, share_of(per_round) * (members - 1));
  const std::size_t longest = std::max(share_of(per_round), last) * element;
  ReducePieces(input, OneOutput(output), reduction, rounds, longest, piece_of, receiver);
}

void HostCollectives::ReduceScatter(const CallTag& tag, void* buffer, std::span<const std::size_t> offsets,
                                    const Reduction& reduction) {
  auto* bytes = static_cast<std::byte*>(buffer);
  ReduceSlices(tag, bytes, OneOutput(bytes), offsets, reduction);
}

void HostCollectives::ReduceScatterSubtrees(const CallTag& tag, const void* buffer,
                                            std::span<const std::size_t> offsets, const Reduction& reduction,
                                            std::span<const int> ends, void* sums) {
  const std::size_t element = reduction.element_bytes();
  const std::size_t begin = offsets[me_] * element;
  const std::size_t stride = offsets[me_ + 1] * element - begin;
  ReduceSlices(tag, static_cast<const std::byte*>(buffer),
               {ends, static_cast<std::byte*>(sums), begin, stride}, offsets, reduction);
}

void HostCollectives::ReduceSlices(const CallTag& tag, const std::byte* input, const Outputs& outputs,
                                   std::span<const std::size_t> offsets, const Reduction& reduction) {
  const std::size_t element = reduction.element_bytes();
  if (const std::size_t bytes = offsets[size_] * element; bytes <= kSmallBytes) {
    Begin(tag, input, bytes, bytes);
    const std::size_t begin = offsets[me_] * element;
    for (int local = 0; local < size_; ++local) {
      inputs_[local] = (local == me_ ? input : AwaitPayload(local)) + begin;
    }
    CombineInputs(outputs, begin, offsets[me_ + 1] - offsets[me_], reduction);
    EndOfMeeting();
    End();
    return;
  }
  BeginLarge(tag);
  const std::size_t per_round = piece_bytes_ / element;
  std::size_t longest = 0;
  for (int local = 0; local < size_; ++local)
    longest = std::max(longest, offsets[local + 1] - offsets[local]);
  const auto piece_of = [&](std::size_t round, int local) {
    const std::size_t begin = std::min(offsets[local] + round * per_round, offsets[local + 1]);
    const std::size_t end = std::min(begin + per_round, offsets[local + 1]);
    return Piece{begin * element, (end - begin) * element};
  };
  ReducePieces(input, outputs, reduction, DivideRoundingUp(longest, per_round),
               std::min(longest, per_round) * element, piece_of, kNobody);
  End();
}

void HostCollectives::Allgather(const CallTag& tag, void* buffer, std::span<const std::size_t> offsets) {
  auto* bytes = static_cast<std::byte*>(buffer);
  std::size_t longest = 0;
  for (int local = 0; local < size_; ++local)
    longest = std::max(longest, offsets[local + 1] - offsets[local]);
  if (longest <= kSmallBytes) {
    Begin(tag, bytes + offsets[me_], offsets[me_ + 1] - offsets[me_], longest);
    for (int local = 0; local < size_; ++local) {
      const std::size_t length = offsets[local + 1] - offsets[local];
      const std::byte* const payload = AwaitPayload(local);
      if (local != me_ && length > 0) std::memcpy(bytes + offsets[local], payload, length);
    }
    EndOfMeeting();
    End();
    return;
  }
  BeginLarge(tag);
  const std::size_t most = std::min(longest, kMostRoundBytes);
  const bool past_caches = offsets[size_] * static_cast<std::size_t>(size_) >= kCachedBytes;
  const auto piece_of = [&](std::size_t round, int local) {
    const std::size_t begin = std::min(offsets[local] + round * most, offsets[local + 1]);
    return Piece{begin, std::min(begin + most, offsets[local + 1]) - begin};
  };
  const auto in = [&](std::size_t round, const Span& span) {
    const Piece piece = piece_of(round, me_);
    CopyToShared(segment_.stage(me_) + span.offset, bytes + piece.offset, piece.bytes, readers_);
  };
  const auto out = [&](std::size_t round, const Span& span) {
    for (int turn = 1; turn < size_; ++turn) {
      const int local = (me_ + turn) % size_;
      const Piece piece = piece_of(round, local);
      if (piece.bytes == 0) continue;
      AwaitInput(local, span);
      CopyOut(bytes + piece.offset, segment_.stage(local) + span.offset, piece.bytes, past_caches);
    }
  };
  RunTwoSteps(DivideRoundingUp(longest, most), most, true, in, out);
  End();
}

void HostCollectives::Broadcast(const CallTag& tag, void* buffer, std::size_t bytes, int root) {
  auto* data = static_cast<std::byte*>(buffer);
  if (bytes <= kSmallBytes) {
    Begin(tag, me_ == root ? data : nullptr, me_ == root ? bytes : 0, bytes);
    if (me_ != root) {
      const std::byte* const payload = AwaitPayload(root);
      if (bytes > 0) std::memcpy(data, payload, bytes);
    }
    End();
    return;
  }
  BeginLarge(tag);
  const std::size_t most = std::min(BroadcastBytes(size_, bytes), bytes);
  const bool past_caches = bytes * (static_cast<std::size_t>(size_) - 1) >= kCachedBytes;
  const auto piece_of = [&](std::size_t round) {
    const std::size_t begin = round * most;
    return Piece{begin, std::min(most, bytes - begin)};
  };
  const auto in = [&](std::size_t round, const Span& span) {
    const Piece piece = piece_of(round);
    CopyToShared(segment_.stage(me_) + span.offset, data + piece.offset, piece.bytes, readers_);
  };
  const auto out = [&](std::size_t round, const Span& span) {
    if (me_ == root) return;
    const Piece piece = piece_of(round);
    AwaitInput(root, span);
    CopyOut(data + piece.offset, segment_.stage(root) + span.offset, piece.bytes, past_caches);
  };
  RunTwoSteps(DivideRoundingUp(bytes, most), most, me_ == root, in, out);
  End();
}

namespace {

/// The payload of an all-to-all: the lengths of the slices for all members, and the slices if they are small.
class SentRow {
 public:
  SentRow(const std::byte* payload, int size) : payload_(payload), size_(static_cast<std::size_t>(size)) {}

  static std::size_t HeadBytes(std::size_t size) { return size * sizeof(std::uint64_t); }
  static bool HasRoomFor(std::size_t slices_bytes, std::size_t size) {
    return slices_bytes <= kSmallBytes - HeadBytes(size);
  }

  std::size_t length(std::size_t member) const {
    std::uint64_t length = 0;
    std::memcpy(&length, payload_ + HeadBytes(member), sizeof(length));
    return length;
  }
  std::size_t total() const { return begin_of(size_); }
  /// The length of the longest slice that `sender`, to whom this row belongs, sends to another member.
  std::size_t LongestSentBy(std::size_t sender) const {
    std::size_t longest = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      if (i != sender) longest = std::max(longest, length(i));
    }
    return longest;
  }
  bool has_slices() const { return HasRoomFor(total(), size_); }
  const std::byte* slice(std::size_t member) const { return payload_ + HeadBytes(size_) + begin_of(member); }

 private:
  std::size_t begin_of(std::size_t member) const {
    std::size_t begin = 0;
    for (std::size_t i = 0; i < member; ++i) begin += length(i);
    return begin;
  }

  const std::byte* payload_;
  std::size_t size_;
};

}  // namespace

void HostCollectives::AllToAll(const CallTag& tag, const void* from, std::span<const std::size_t> sent,
                               void* to, std::span<const std::size_t> received) {
  const auto size = static_cast<std::size_t>(size_);
  const auto* const source = static_cast<const std::byte*>(from);
  auto* const target = static_cast<std::byte*>(to);
  const bool shows_slices = SentRow::HasRoomFor(sent.back(), size);
  row_.resize(SentRow::HeadBytes(size) + (shows_slices ? sent.back() : 0));
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint64_t length = sent[i + 1] - sent[i];
    std::memcpy(row_.data() + SentRow::HeadBytes(i), &length, sizeof(length));
  }
  if (shows_slices && sent.back() > 0)
    std::memcpy(row_.data() + SentRow::HeadBytes(size), source, sent.back());
  Begin(tag, row_.data(), row_.size(), kSmallBytes);
  if (const std::size_t own = sent[me_ + 1] - sent[me_]; own > 0) {
    std::memcpy(target + received[me_], source + sent[me_], own);
  }

  std::size_t longest = 0;   // length of the longest slice of members that send in rounds
  std::vector<int> senders;  // members that send their slices in rounds
  for (int turn = 0; turn < size_; ++turn) {
    const int local = (me_ + turn) % size_;
    const SentRow row(AwaitPayload(local), size_);
    const std::size_t expected = received[local + 1] - received[local];
    if (row.length(me_) != expected) ThrowOtherLength(local, row.length(me_), expected);
    if (!row.has_slices()) {
      longest = std::max(longest, row.LongestSentBy(local));
      if (local != me_) senders.push_back(local);
    } else if (local != me_ && expected > 0) {
      std::memcpy(target + received[local], row.slice(me_), expected);
    }
  }
  EndOfMeeting();
  const std::size_t part = std::min(kMostRoundBytes / size / kCacheLine * kCacheLine, RoundUpToLine(longest));
  const bool past_caches = received.back() * size >= kCachedBytes;
  const auto piece_of = [&](std::span<const std::size_t> offsets, std::size_t round, int local) {
    const std::size_t begin = std::min(offsets[local] + round * part, offsets[local + 1]);
    return Piece{begin, std::min(part, offsets[local + 1] - begin)};
  };
  const auto in = [&](std::size_t round, const Span& span) {
    std::byte* const own = segment_.stage(me_) + span.offset;
    for (int turn = 1; turn < size_; ++turn) {
      const int local = (me_ + turn) % size_;
      const Piece piece = piece_of(sent, round, local);
      if (piece.bytes == 0) continue;
      CopyToShared(own + local * part, source + piece.offset, piece.bytes, segment_.ReaderAt(local));
    }
  };
  const auto out = [&](std::size_t round, const Span& span) {
    for (const int local : senders) {
      const Piece piece = piece_of(received, round, local);
      if (piece.bytes == 0) continue;
      AwaitInput(local, span);
      CopyOut(target + piece.offset, segment_.stage(local) + span.offset + me_ * part, piece.bytes,
              past_caches);
    }
  };
  const std::size_t rounds = part == 0 ? 0 : DivideRoundingUp(longest, part);
  RunTwoSteps(rounds, part * size, !shows_slices, in, out);
  End();
}

void HostCollectives::ThrowOtherLength(int local, std::size_t sent, std::size_t expected) const {
  CallTag own = tag_;
  CallTag theirs = tag_;
  own.count = expected;
  theirs.count = sent;
  ThrowDifferentCalls(segment_.rank(), own, segment_.ranks()[local], theirs);
}

}  // namespace warren
