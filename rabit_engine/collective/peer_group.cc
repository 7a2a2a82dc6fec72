#include "rabit_engine/collective/peer_group.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "rabit_engine/base/scratch.h"
#include "rabit_engine/transport/message_frames.h"

namespace warren {
namespace {

// The maximum size of the pieces that are passed to `consume`, unless an element is larger. A piece and the
// data with which it is combined fit the L2 cache.
constexpr std::size_t kPieceBytes = std::size_t{128} << 10;
// If nothing more can be read, an incomplete piece of at least this size is consumed immediately instead of
// waiting for the rest.
constexpr std::size_t kWorthConsuming = std::size_t{32} << 10;

// The memory for pieces is kept between calls, because allocating 128 KiB for each collective costs page
// faults.
struct PieceBuffer {
  std::size_t bytes = 0;
  Scratch scratch;
};
std::byte* PieceMemory(std::size_t slot, std::size_t bytes) {
  thread_local std::vector<PieceBuffer> buffers;
  if (slot >= buffers.size()) buffers.resize(slot + 1);
  if (buffers[slot].bytes < bytes) buffers[slot] = {bytes, Scratch(bytes)};
  return buffers[slot].scratch.data();
}

/// Whether messages with this tag are sent in frames. The tag decides, because both ends know it. The lengths
/// of messages cannot decide, because the receiver may divide the bytes into messages differently.
bool HasFrames(const Link& link, const CallTag& tag) {
  return tag.count * tag.element_bytes >= kMinFramedBytes && link.has_frames();
}

// The maximum number of writers, and of readers, that a thread keeps between calls. Allocating their buffers
// (up to 70 and 129 KiB) in each call would be slow.
constexpr std::size_t kMaxKept = 64;

std::vector<std::unique_ptr<FrameWriter>>& Writers() {
  thread_local std::vector<std::unique_ptr<FrameWriter>> writers;
  return writers;
}
FrameWriter& WriterAt(std::size_t slot) {
  auto& writers = Writers();
  while (slot >= writers.size()) writers.push_back(std::make_unique<FrameWriter>());
  return *writers[slot];
}

std::vector<std::unique_ptr<FrameReader>>& FreeReaders() {
  thread_local std::vector<std::unique_ptr<FrameReader>> readers;
  return readers;
}

}  // namespace

struct PeerGroup::Outgoing {
  const Send* send;
  Link* link;
  CallTag tag;
  std::size_t tag_bytes;          ///< 0 if the peer has already been sent the tag
  std::size_t done = 0;           ///< bytes of tag and data that have been sent; unused if there are frames
  int after = -1;                 ///< index of an earlier message to the same peer, which must end first
  FrameWriter* frames = nullptr;  ///< nullptr if the message has no frames
  bool finished() const { return frames != nullptr ? frames->finished() : done == tag_bytes + send->bytes; }
};

struct PeerGroup::Incoming {
  const Receive* receive;
  Link* link;
  std::size_t tag_bytes;
  std::size_t done = 0;
  int after = -1;
  std::array<std::byte, sizeof(CallTag)> tag;
  std::byte* piece = nullptr;      ///< memory for the next piece for `consume`, if it is used
  std::size_t piece_capacity = 0;  ///< the size of this memory
  std::size_t piece_bytes = 0;     ///< the number of bytes received into it
  std::size_t consumed = 0;        ///< the number of bytes that have been passed to `consume`
  FrameReader* frames = nullptr;   ///< nullptr if the message has no frames
  bool finished() const { return done == tag_bytes + receive->bytes; }
};

PeerGroup::PeerGroup(Transport& transport, std::span<const int> members, int index, const CallTag& tag,
                     Clock::time_point deadline)
    : transport_(transport),
      members_(members),
      index_(index),
      tag_(tag),
      deadline_(deadline),
      sent_tag_(members.size(), false),
      checked_tag_(members.size(), false) {}

PeerGroup::PeerGroup(Transport& transport, std::span<const int> members, int index, const Hosts& hosts)
    : PeerGroup(transport, members, index, CallTag(), kNoDeadline) {
  hosts_ = &hosts;
}

PeerGroup::~PeerGroup() = default;

void PeerGroup::Begin(const CallTag& tag, Clock::time_point deadline) {
  tag_ = tag;
  deadline_ = deadline;
  // Without an Exchange there is nothing to reset. Returning early saves time in shared-memory calls, where
  // even 10 ns matter.
  if (!std::exchange(has_exchanged_, false)) return;
  sent_tag_.assign(members_.size(), false);
  checked_tag_.assign(members_.size(), false);
  ReleaseReaders();
}

std::vector<int> PeerGroup::Others() const {
  std::vector<int> others;
  others.reserve(members_.size() - 1);
  for (int i = 1; i < size(); ++i) others.push_back((index_ + i) % size());
  return others;
}

void PeerGroup::Connect(std::span<const int> peers) {
  std::vector<int> ranks;
  ranks.reserve(peers.size());
  for (const int peer : peers) ranks.push_back(rank_of(peer));
  transport_.Connect(ranks);
}

void PeerGroup::Exchange(std::span<const Send> sends, std::span<const Receive> receives) {
  Prepare(sends, receives);
  for (;;) {
    bool all_finished = true;
    bool any_more = false;  // another turn may move something without waiting
    const auto advance = [&](auto& messages) {
      for (auto& message : messages) {
        if (message.finished()) continue;
        const bool took_all = (message.after < 0 || messages[message.after].finished()) && Advance(message);
        all_finished = all_finished && message.finished();
        // A message that has ended has nothing more to move, but a later message may.
        any_more = any_more || (took_all && (!message.finished() || messages.size() > 1));
      }
    };
    advance(outgoing_);
    advance(incoming_);
    if (all_finished) break;
    if (!any_more) WaitForProgress();
  }
  if (Writers().size() > kMaxKept) Writers().resize(kMaxKept);
}

void PeerGroup::Prepare(std::span<const Send> sends, std::span<const Receive> receives) {
  const auto earlier = [](const auto& messages, int peer, auto peer_of) {
    for (int i = static_cast<int>(messages.size()); i-- > 0;) {
      if (peer_of(messages[i]) == peer && !messages[i].finished()) return i;
    }
    return -1;
  };
  has_exchanged_ = true;
  const bool all_tagged = CountsAreOfMessages(tag_.collective);
  outgoing_.clear();
  std::size_t writers = 0;
  for (const Send& send : sends) {
    const std::size_t tag_bytes = sent_tag_[send.peer] && !all_tagged ? 0 : sizeof(CallTag);
    const int after = earlier(outgoing_, send.peer, [](const Outgoing& out) { return out.send->peer; });
    sent_tag_[send.peer] = true;
    Outgoing& out = outgoing_.emplace_back();
    out.send = &send;
    out.link = &transport_.To(rank_of(send.peer));
    out.tag = TagOf(send.bytes);
    out.tag_bytes = tag_bytes;
    out.after = after;
    if (send.bytes == 0 || !HasFrames(*out.link, out.tag)) continue;
    out.frames = &WriterAt(writers++);
    out.frames->Begin(std::as_bytes(std::span(&out.tag, 1)).first(tag_bytes),
                      {static_cast<const std::byte*>(send.data), send.bytes});
  }
  incoming_.clear();
  std::size_t pieces = 0;
  for (const Receive& receive : receives) {
    const int after = earlier(incoming_, receive.peer, [](const Incoming& in) { return in.receive->peer; });
    Incoming& in = incoming_.emplace_back();
    in.receive = &receive;
    in.link = &transport_.To(rank_of(receive.peer));
    in.tag_bytes = checked_tag_[receive.peer] && !all_tagged ? 0 : sizeof(CallTag);
    in.after = after;
    checked_tag_[receive.peer] = true;
    if (HasFrames(*in.link, TagOf(receive.bytes))) in.frames = &ReaderOf(receive.peer);
    if (receive.data != nullptr || receive.bytes == 0) continue;
    const std::size_t element = std::max<std::size_t>(1, tag_.element_bytes);
    in.piece_capacity = std::max<std::size_t>(1, kPieceBytes / element) * element;
    in.piece = PieceMemory(pieces++, in.piece_capacity);
  }
}

/// Returns the reader for this peer's frames. It is kept until the call ends, because a frame may be longer
/// than the message in which it begins to be received.
FrameReader& PeerGroup::ReaderOf(int peer) {
  const auto found =
      std::find_if(readers_.begin(), readers_.end(), [peer](const auto& one) { return one.first == peer; });
  if (found != readers_.end()) return *found->second;
  auto& free = FreeReaders();
  if (free.empty()) free.push_back(std::make_unique<FrameReader>());
  free.back()->Reset();
  readers_.emplace_back(peer, std::move(free.back()));
  free.pop_back();
  return *readers_.back().second;
}

void PeerGroup::ReleaseReaders() {
  auto& free = FreeReaders();
  for (auto& [peer, reader] : readers_) {
    if (free.size() < kMaxKept) free.push_back(std::move(reader));
  }
  readers_.clear();
}

CallTag PeerGroup::TagOf(std::size_t message_bytes) const {
  CallTag tag = tag_;
  if (CountsAreOfMessages(tag.collective)) tag.count = message_bytes;
  return tag;
}

/// Runs one turn of a message, which moves up to kTurnBytes of its data. Returns whether another turn may
/// follow immediately.
bool PeerGroup::Advance(Outgoing& out) {
  if (out.frames != nullptr) return out.frames->Advance(*out.link);
  const auto* data = static_cast<const std::byte*>(out.send->data);
  std::size_t taken = 0;
  std::size_t offered = 0;
  if (out.done < out.tag_bytes) {
    const auto* tag = reinterpret_cast<const std::byte*>(&out.tag);
    const std::size_t head = out.tag_bytes - out.done;
    const std::size_t bytes = std::min(out.send->bytes, kTurnBytes);
    offered = head + bytes;
    taken = out.link->TrySendWithHead(tag + out.done, head, data, bytes);
  } else {
    const std::size_t offset = out.done - out.tag_bytes;
    offered = std::min(out.send->bytes - offset, kTurnBytes);
    taken = out.link->TrySend(data + offset, offered);
  }
  out.done += taken;
  return taken == offered;
}

bool PeerGroup::Advance(Incoming& in) {
  if (in.done < in.tag_bytes) {
    in.done += in.link->TryReceive(in.tag.data() + in.done, in.tag_bytes - in.done);
    if (in.done < in.tag_bytes) return false;
    CheckTag(in);
    if (in.finished()) return true;
  }
  const auto receive = [&in](void* to, std::size_t bytes) {
    return in.frames != nullptr ? in.frames->TryReceive(*in.link, to, bytes) : in.link->TryReceive(to, bytes);
  };
  const std::size_t offset = in.done - in.tag_bytes;
  const std::size_t left = in.receive->bytes - offset;
  if (in.piece == nullptr) {
    const std::size_t wanted = std::min(left, kTurnBytes);
    const std::size_t got = receive(static_cast<std::byte*>(in.receive->data) + offset, wanted);
    in.done += got;
    return got == wanted;
  }
  const std::size_t wanted = std::min(left, in.piece_capacity - in.piece_bytes);
  const std::size_t got = receive(in.piece + in.piece_bytes, wanted);
  in.done += got;
  in.piece_bytes += got;
  if (got == wanted || in.piece_bytes >= kWorthConsuming) Consume(in);
  return got == wanted;
}

/// Passes the whole elements of the piece to `consume`, and keeps the beginning of an incomplete element.
void PeerGroup::Consume(Incoming& in) {
  const std::size_t rest = in.finished() ? 0 : in.piece_bytes % std::max<std::size_t>(1, tag_.element_bytes);
  const std::size_t whole = in.piece_bytes - rest;
  if (whole == 0) return;
  in.receive->consume(in.piece, in.consumed, whole);
  in.consumed += whole;
  in.piece_bytes = rest;
  std::memmove(in.piece, in.piece + whole, rest);
}

void PeerGroup::CheckTag(const Incoming& in) {
  CallTag theirs;
  std::memcpy(&theirs, in.tag.data(), sizeof theirs);
  const CallTag own = TagOf(in.receive->bytes);
  if (theirs == own) return;
  transport_.Abort(transport_.rank());
  ThrowDifferentCalls(transport_.rank(), own, rank_of(in.receive->peer), theirs);
}

void PeerGroup::WaitForProgress() {
  interests_.clear();
  const auto add = [&](int peer, bool to_send) {
    const int rank = rank_of(peer);
    for (Interest& interest : interests_) {
      if (interest.peer != rank) continue;
      (to_send ? interest.to_send : interest.to_receive) = true;
      return;
    }
    interests_.push_back({rank, to_send, !to_send});
  };
  for (const Outgoing& out : outgoing_) {
    if (!out.finished()) add(out.send->peer, true);
  }
  for (const Incoming& in : incoming_) {
    if (!in.finished()) add(in.receive->peer, false);
  }
  transport_.Wait(interests_, deadline_);
}

}  // namespace warren
