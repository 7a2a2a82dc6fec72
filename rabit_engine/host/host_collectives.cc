#include "rabit_engine/host/host_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "rabit_engine/base/error.h"
#include "rabit_engine/host/shared_copy.h"

namespace warren {
namespace {

/// With up to this many ranks, each rank reads the others' whole vectors: no more cache lines cross between
/// cores than in three stages, and there is one wait fewer.
constexpr int kOneStageRanks = 2;
/// Bytes of a round of a one-stage allreduce: as many as possible while the data in flight fits the
/// second-level cache. Vectors of at most two long rounds use long rounds.
constexpr std::size_t kOneStageBytes = kEntryBytes / 2;
constexpr std::size_t kLongOneStageBytes = kEntryBytes;

/// Bytes that are combined before they are copied into the entry.
constexpr std::size_t kCombineBytes = std::size_t{8} << 10;

std::size_t DivideRoundingUp(std::size_t value, std::size_t by) {
  return (value + by - 1) / by;
}

/// From this many ranks on, the rounds of a reduction are half as long: otherwise the data that all ranks
/// have in flight would not stay in the cache. With fewer ranks, long rounds need half the waits.
constexpr int kManyRanks = 9;

std::size_t PieceBytes(int size) {
  const std::size_t round_bytes = size < kManyRanks ? kEntryBytes : kEntryBytes / 2;
  return round_bytes / static_cast<std::size_t>(size) / kCacheLine * kCacheLine;
}

/// Results are copied past the caches once the output of all members fills about half of a last-level cache
/// and so would not stay there: then the destination need not be read before it is overwritten. The limit is
/// higher if the result replaces the input, which was read a few rounds before and is still in some cache.
constexpr std::size_t kCachedBytes = std::size_t{16} << 20;
constexpr std::size_t kCachedInputBytes = std::size_t{64} << 20;

void CopyOut(void* to, const void* from, std::size_t bytes, bool past_caches) {
  past_caches ? CopyPastCaches(to, from, bytes) : static_cast<void>(std::memcpy(to, from, bytes));
}

/// Bytes of one round of a broadcast. With a single reader, which copies out while the root copies in the
/// next round, only the first round is not overlapped, so rounds are short. With more readers each round
/// costs more waits, so rounds are long.
std::size_t BroadcastBytes(int size, std::size_t bytes) {
  constexpr std::size_t kRounds = 4;
  constexpr std::size_t kLeast = std::size_t{16} << 10;
  constexpr std::size_t kMost = std::size_t{128} << 10;
  return size == 2 ? std::clamp(DivideRoundingUp(bytes, kRounds * kCacheLine) * kCacheLine, kLeast, kMost)
                   : kEntryBytes;
}

}  // namespace

HostCollectives::HostCollectives(HostSegment& segment)
    : segment_(segment),
      waiter_(segment),
      me_(segment.local_index()),
      size_(segment.local_size()),
      piece_bytes_(PieceBytes(size_)),
      inputs_(static_cast<std::size_t>(size_)) {}

bool HostCollectives::Fits(std::size_t element_bytes, int size) {
  return element_bytes <= PieceBytes(std::min(size, kMaxLocalRanks));
}

// --- meeting the others ---

void HostCollectives::Begin(const CallTag& tag, const void* payload, std::size_t bytes) {
  tag_ = tag;
  ++call_;
  // The slot still holds an earlier call, which all members must have completed.
  if (all_done_ + kSlots < call_) all_done_ = AwaitAll(&RankLines::completed, call_ - kSlots);
  Slot& slot = segment_.slot(me_, call_);
  slot.tag = tag;
  CopyToShared(slot.payload, payload, bytes);
  slot.sequence.store(call_, std::memory_order_seq_cst);
  segment_.RingBell();
}

void HostCollectives::End() {
  segment_.lines(me_).completed.store(call_, std::memory_order_seq_cst);
  segment_.RingBell();
}

const Slot& HostCollectives::AwaitSlot(int local) {
  const Slot& slot = segment_.slot(local, call_);
  waiter_.Until(local, [&] { return slot.sequence.load(std::memory_order_acquire) == call_; });
  if (std::memcmp(&slot.tag, &tag_, sizeof(tag_)) != 0) [[unlikely]] {
    LookForMisuse(local);
  }
  return slot;
}

void HostCollectives::LookForMisuse(int local) const {
  const Slot& slot = segment_.slot(local, call_);
  if (slot.sequence.load(std::memory_order_acquire) != call_ || slot.tag == tag_) return;
  segment_.ThrowIfCallsDiffer(local, tag_.sequence);
  ThrowDifferentCalls(segment_.ranks()[me_], tag_, segment_.ranks()[local], slot.tag);
}

void HostCollectives::Await(int local, Counter counter, std::uint64_t value) {
  const std::atomic<std::uint64_t>& word = segment_.lines(local).*counter;
  waiter_.Until(local, [&] { return word.load(std::memory_order_acquire) >= value; });
}

/// Awaits a member's input. In the first round, also compares the calls, since the member has published its
/// tag by then.
void HostCollectives::AwaitInput(int local, std::uint64_t value) {
  Await(local, &RankLines::input, value);
  if (value == round_ + 1) LookForMisuse(local);
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

void HostCollectives::AwaitEntry(std::uint64_t number) {
  if (number >= drained_ + kEntries) drained_ = AwaitAll(&RankLines::output, number + 1 - kEntries);
}

void HostCollectives::Publish(Counter counter, std::uint64_t value) {
  (segment_.lines(me_).*counter).store(value, std::memory_order_seq_cst);
  segment_.RingBell();
}

// --- small ---

void HostCollectives::CombineSlots(const void* input, void* output, std::size_t count,
                                   const Reduction& reduction) {
  for (int local = 0; local < size_; ++local) {
    inputs_[local] = local == me_ ? input : AwaitSlot(local).payload;
  }
  reduction.CombineAll(output, inputs_, count);
}

void HostCollectives::Allreduce(const CallTag& tag, const void* input, void* output, std::size_t count,
                                const Reduction& reduction) {
  const std::size_t bytes = count * reduction.element_bytes();
  if (bytes <= kSlotPayloadBytes) {
    Begin(tag, input, bytes);
    CombineSlots(input, output, count, reduction);
  } else {
    Begin(tag, nullptr, 0);
    ReduceVector(static_cast<const std::byte*>(input), static_cast<std::byte*>(output), count, reduction,
                 kAllMembers);
  }
  all_done_ = call_ - 1;  // a rank that has begun this call has completed the previous one
  End();
}

void HostCollectives::Reduce(const CallTag& tag, void* buffer, std::size_t count, const Reduction& reduction,
                             int root) {
  const std::size_t bytes = count * reduction.element_bytes();
  if (bytes <= kSlotPayloadBytes) {
    Begin(tag, buffer, bytes);
    if (me_ == root) CombineSlots(buffer, buffer, count, reduction);
  } else {
    Begin(tag, nullptr, 0);
    ReduceVector(static_cast<std::byte*>(buffer), static_cast<std::byte*>(buffer), count, reduction, root);
  }
  End();
}

void HostCollectives::Barrier(const CallTag& tag) {
  Begin(tag, nullptr, 0);
  for (int local = 0; local < size_; ++local) AwaitSlot(local);
  all_done_ = call_ - 1;
  End();
}

// --- large: through the entries ---

template <typename In, typename Combine, typename Out>
void HostCollectives::RunThreeStages(std::size_t rounds, In in, Combine combine, Out out) {
  for (std::size_t step = 0; step < rounds + 2; ++step) {
    if (step < rounds) {
      const std::uint64_t number = round_ + step;
      AwaitEntry(number);
      in(step, number);
      Publish(&RankLines::input, number + 1);
    }
    if (step >= 1 && step - 1 < rounds) {
      const std::uint64_t number = round_ + step - 1;
      combine(step - 1, number);
      Publish(&RankLines::result, number + 1);
    }
    if (step >= 2) {
      const std::uint64_t number = round_ + step - 2;
      out(step - 2, number);
      Publish(&RankLines::output, number + 1);
    }
  }
  round_ += rounds;
}

template <typename In, typename Last>
void HostCollectives::RunTwoStages(std::size_t rounds, bool writes, In in, Last last) {
  for (std::size_t step = 0; step < rounds + 1; ++step) {
    if (writes && step < rounds) {
      const std::uint64_t number = round_ + step;
      AwaitEntry(number);
      in(step, number);
      Publish(&RankLines::input, number + 1);
    }
    if (step >= 1) {
      const std::uint64_t number = round_ + step - 1;
      last(step - 1, number);
      Publish(&RankLines::output, number + 1);
    }
  }
  round_ += rounds;
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
                                   std::size_t rounds, PieceOf piece_of, int receiver) {
  const bool receives = receiver == kAllMembers || receiver == me_;
  const std::size_t members = static_cast<std::size_t>(size_);
  const bool in_place = outputs.first == input;
  // The product is the number of bytes that all members write, rounded up to whole rounds.
  const bool past_caches =
      rounds * piece_bytes_ * members * members >= (in_place ? kCachedInputBytes : kCachedBytes);
  const auto in = [&](std::size_t round, std::uint64_t number) {
    for (int local = 0; local < size_; ++local) {
      const Piece piece = piece_of(round, local);
      if (local == me_ || piece.bytes == 0) continue;
      CopyToShared(segment_.entry(me_, number) + local * piece_bytes_, input + piece.offset, piece.bytes);
    }
  };
  const auto combine = [&](std::size_t round, std::uint64_t number) {
    const Piece piece = piece_of(round, me_);
    const std::size_t place = me_ * piece_bytes_;
    for (int turn = 1; turn < size_; ++turn) AwaitInput((me_ + turn) % size_, number + 1);
    if (piece.bytes == 0) return;
    for (int local = 0; local < size_; ++local) inputs_[local] = segment_.entry(local, number) + place;
    inputs_[me_] = input + piece.offset;
    // Combine in blocks that stay in the first-level cache on their way into the entry.
    const std::size_t block =
        std::max<std::size_t>(1, kCombineBytes / reduction.element_bytes()) * reduction.element_bytes();
    for (std::size_t done = 0; done < piece.bytes; done += block) {
      const std::size_t now = std::min(block, piece.bytes - done);
      CombineInputs(outputs, piece.offset + done, now / reduction.element_bytes(), reduction);
      // This rank's own input is not in the entry, so its place there is free for the result.
      if (receiver != kNobody) {
        CopyToShared(segment_.entry(me_, number) + place + done, outputs.first + piece.offset + done, now);
      }
      for (const void*& from : inputs_) from = static_cast<const std::byte*>(from) + now;
    }
  };
  const auto out = [&](std::size_t round, std::uint64_t number) {
    if (!receives) return;
    for (int turn = 1; turn < size_; ++turn) {
      const int local = (me_ + turn) % size_;
      const Piece piece = piece_of(round, local);
      if (piece.bytes == 0) continue;
      Await(local, &RankLines::result, number + 1);
      CopyOut(outputs.first + piece.offset, segment_.entry(local, number) + local * piece_bytes_, piece.bytes,
              past_caches);
    }
  };
  RunThreeStages(rounds, in, combine, out);
}

void HostCollectives::ReduceInOneStage(const std::byte* input, std::byte* output, std::size_t count,
                                       const Reduction& reduction, int receiver) {
  const std::size_t element = reduction.element_bytes();
  const std::size_t bytes = count * element;
  const std::size_t most = bytes <= 2 * kLongOneStageBytes ? kLongOneStageBytes : kOneStageBytes;
  const std::size_t per_round = DivideRoundingUp(count, DivideRoundingUp(count, most / element));
  const std::size_t rounds = DivideRoundingUp(count, per_round);
  const auto piece_of = [=](std::size_t round) {
    const std::size_t begin = std::min(count, round * per_round);
    return Piece{begin * element, (std::min(count, begin + per_round) - begin) * element};
  };
  const auto in = [&](std::size_t round, std::uint64_t number) {
    const Piece piece = piece_of(round);
    CopyToShared(segment_.entry(me_, number), input + piece.offset, piece.bytes);
  };
  const auto combine = [&](std::size_t round, std::uint64_t number) {
    if (receiver != kAllMembers && receiver != me_) return;
    const Piece piece = piece_of(round);
    for (int turn = 1; turn < size_; ++turn) AwaitInput((me_ + turn) % size_, number + 1);
    for (int local = 0; local < size_; ++local) inputs_[local] = segment_.entry(local, number);
    inputs_[me_] = input + piece.offset;
    reduction.CombineAll(output + piece.offset, inputs_, piece.bytes / element);
  };
  RunTwoStages(rounds, true, in, combine);
}

void HostCollectives::ReduceVector(const std::byte* input, std::byte* output, std::size_t count,
                                   const Reduction& reduction, int receiver) {
  const std::size_t element = reduction.element_bytes();
  const std::size_t members = static_cast<std::size_t>(size_);
  if (size_ <= kOneStageRanks) {
    ReduceInOneStage(input, output, count, reduction, receiver);
    return;
  }
  // The rounds have equal lengths: a short last one would cost as much waiting as the others.
  const std::size_t most = piece_bytes_ / element * members;
  const std::size_t rounds = DivideRoundingUp(count, most);
  const std::size_t per_round = DivideRoundingUp(count, rounds);
  // Pieces begin on cache lines of the buffer if the element size allows it.
  const std::size_t granule = kCacheLine % element == 0 ? kCacheLine / element : 1;
  const auto piece_of = [=](std::size_t round, int local) {
    const std::size_t begin = round * per_round;
    const std::size_t length = std::min(per_round, count - begin);
    const std::size_t share =
        std::min(DivideRoundingUp(DivideRoundingUp(length, members), granule) * granule, most / members);
    const std::size_t from = std::min(length, local * share);
    const std::size_t to = local + 1 == static_cast<int>(members) ? length : std::min(length, from + share);
    return Piece{(begin + from) * element, (to - from) * element};
  };
  ReducePieces(input, OneOutput(output), reduction, rounds, piece_of, receiver);
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
  if (offsets[size_] * element <= kSlotPayloadBytes) {
    Begin(tag, input, offsets[size_] * element);
    const std::size_t begin = offsets[me_] * element;
    for (int local = 0; local < size_; ++local) {
      inputs_[local] = (local == me_ ? input : AwaitSlot(local).payload) + begin;
    }
    CombineInputs(outputs, begin, offsets[me_ + 1] - offsets[me_], reduction);
    all_done_ = call_ - 1;
    End();
    return;
  }
  Begin(tag, nullptr, 0);
  const std::size_t per_round = piece_bytes_ / element;
  std::size_t longest = 0;
  for (int local = 0; local < size_; ++local)
    longest = std::max(longest, offsets[local + 1] - offsets[local]);
  const auto piece_of = [&](std::size_t round, int local) {
    const std::size_t begin = std::min(offsets[local] + round * per_round, offsets[local + 1]);
    const std::size_t end = std::min(begin + per_round, offsets[local + 1]);
    return Piece{begin * element, (end - begin) * element};
  };
  ReducePieces(input, outputs, reduction, DivideRoundingUp(longest, per_round), piece_of, kNobody);
  End();
}

void HostCollectives::Allgather(const CallTag& tag, void* buffer, std::span<const std::size_t> offsets) {
  auto* bytes = static_cast<std::byte*>(buffer);
  std::size_t longest = 0;
  for (int local = 0; local < size_; ++local)
    longest = std::max(longest, offsets[local + 1] - offsets[local]);
  if (longest <= kSlotPayloadBytes) {
    Begin(tag, bytes + offsets[me_], offsets[me_ + 1] - offsets[me_]);
    for (int local = 0; local < size_; ++local) {
      const std::size_t length = offsets[local + 1] - offsets[local];
      const Slot& slot = AwaitSlot(local);
      if (local != me_ && length > 0) std::memcpy(bytes + offsets[local], slot.payload, length);
    }
    all_done_ = call_ - 1;
    End();
    return;
  }
  Begin(tag, nullptr, 0);
  const bool past_caches = offsets[size_] * static_cast<std::size_t>(size_) >= kCachedBytes;
  const auto piece_of = [&](std::size_t round, int local) {
    const std::size_t begin = std::min(offsets[local] + round * kEntryBytes, offsets[local + 1]);
    return Piece{begin, std::min(begin + kEntryBytes, offsets[local + 1]) - begin};
  };
  const auto in = [&](std::size_t round, std::uint64_t number) {
    const Piece piece = piece_of(round, me_);
    CopyToShared(segment_.entry(me_, number), bytes + piece.offset, piece.bytes);
  };
  const auto out = [&](std::size_t round, std::uint64_t number) {
    for (int turn = 1; turn < size_; ++turn) {
      const int local = (me_ + turn) % size_;
      const Piece piece = piece_of(round, local);
      if (piece.bytes == 0) continue;
      AwaitInput(local, number + 1);
      CopyOut(bytes + piece.offset, segment_.entry(local, number), piece.bytes, past_caches);
    }
  };
  RunTwoStages(DivideRoundingUp(longest, kEntryBytes), true, in, out);
  End();
}

void HostCollectives::Broadcast(const CallTag& tag, void* buffer, std::size_t bytes, int root) {
  auto* data = static_cast<std::byte*>(buffer);
  if (bytes <= kSlotPayloadBytes) {
    Begin(tag, me_ == root ? data : nullptr, me_ == root ? bytes : 0);
    if (me_ != root) {
      const Slot& slot = AwaitSlot(root);
      if (bytes > 0) std::memcpy(data, slot.payload, bytes);
    }
    End();
    return;
  }
  Begin(tag, nullptr, 0);
  const std::size_t most = BroadcastBytes(size_, bytes);
  const bool past_caches = bytes * (static_cast<std::size_t>(size_) - 1) >= kCachedBytes;
  // Small pieces are written at rotating places of their entries, to cache lines that the reader has not used
  // for some time.
  const auto place = [&](std::uint64_t number) {
    return segment_.entry(root, number) + number / kEntries % (kEntryBytes / most) * most;
  };
  const auto piece_of = [&](std::size_t round) {
    const std::size_t begin = round * most;
    return Piece{begin, std::min(most, bytes - begin)};
  };
  const auto in = [&](std::size_t round, std::uint64_t number) {
    const Piece piece = piece_of(round);
    CopyToShared(place(number), data + piece.offset, piece.bytes);
  };
  const auto out = [&](std::size_t round, std::uint64_t number) {
    if (me_ == root) return;
    const Piece piece = piece_of(round);
    AwaitInput(root, number + 1);
    CopyOut(data + piece.offset, place(number), piece.bytes, past_caches);
  };
  RunTwoStages(DivideRoundingUp(bytes, most), me_ == root, in, out);
  End();
}

namespace {

/// The contents of a slot in an all-to-all: the lengths of the slices for all members, and the slices if they
/// fit.
class SentRow {
 public:
  SentRow(const std::byte* payload, int size) : payload_(payload), size_(static_cast<std::size_t>(size)) {}

  static std::size_t HeadBytes(std::size_t size) { return size * sizeof(std::uint64_t); }
  static bool HasRoomFor(std::size_t slices_bytes, std::size_t size) {
    return slices_bytes <= kSlotPayloadBytes - HeadBytes(size);
  }

  std::size_t length(std::size_t member) const {
    std::uint64_t length = 0;
    std::memcpy(&length, payload_ + HeadBytes(member), sizeof(length));
    return length;
  }
  std::size_t total() const { return begin_of(size_); }
  std::size_t longest() const {
    std::size_t longest = 0;
    for (std::size_t i = 0; i < size_; ++i) longest = std::max(longest, length(i));
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
  const bool all_in_slot = SentRow::HasRoomFor(sent.back(), size);
  row_.resize(SentRow::HeadBytes(size) + (all_in_slot ? sent.back() : 0));
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint64_t length = sent[i + 1] - sent[i];
    std::memcpy(row_.data() + SentRow::HeadBytes(i), &length, sizeof(length));
  }
  if (all_in_slot && sent.back() > 0)
    std::memcpy(row_.data() + SentRow::HeadBytes(size), source, sent.back());
  Begin(tag, row_.data(), row_.size());
  if (const std::size_t own = sent[me_ + 1] - sent[me_]; own > 0) {
    std::memcpy(target + received[me_], source + sent[me_], own);
  }

  const std::size_t part = kEntryBytes / size / kCacheLine * kCacheLine;
  std::size_t rounds = 0;
  std::vector<int> senders;  // members that send their slices in rounds
  for (int turn = 0; turn < size_; ++turn) {
    const int local = (me_ + turn) % size_;
    const SentRow row(AwaitSlot(local).payload, size_);
    const std::size_t expected = received[local + 1] - received[local];
    if (row.length(me_) != expected) ThrowOtherLength(local, row.length(me_), expected);
    if (!row.has_slices()) {
      rounds = std::max(rounds, DivideRoundingUp(row.longest(), part));
      if (local != me_) senders.push_back(local);
    } else if (local != me_ && expected > 0) {
      std::memcpy(target + received[local], row.slice(me_), expected);
    }
  }
  all_done_ = call_ - 1;
  const bool past_caches = received.back() * size >= kCachedBytes;
  const auto piece_of = [&](std::span<const std::size_t> offsets, std::size_t round, int local) {
    const std::size_t begin = std::min(offsets[local] + round * part, offsets[local + 1]);
    return Piece{begin, std::min(part, offsets[local + 1] - begin)};
  };
  const auto in = [&](std::size_t round, std::uint64_t number) {
    for (int turn = 1; turn < size_; ++turn) {
      const int local = (me_ + turn) % size_;
      const Piece piece = piece_of(sent, round, local);
      if (piece.bytes == 0) continue;
      CopyToShared(segment_.entry(me_, number) + local * part, source + piece.offset, piece.bytes);
    }
  };
  const auto out = [&](std::size_t round, std::uint64_t number) {
    for (const int local : senders) {
      const Piece piece = piece_of(received, round, local);
      if (piece.bytes == 0) continue;
      AwaitInput(local, number + 1);
      CopyOut(target + piece.offset, segment_.entry(local, number) + me_ * part, piece.bytes, past_caches);
    }
  };
  RunTwoStages(rounds, !all_in_slot, in, out);
  End();
}

void HostCollectives::ThrowOtherLength(int local, std::size_t sent, std::size_t expected) const {
  CallTag own = tag_;
  CallTag theirs = tag_;
  own.count = expected;
  theirs.count = sent;
  ThrowDifferentCalls(segment_.ranks()[me_], own, segment_.ranks()[local], theirs);
}

}  // namespace warren
