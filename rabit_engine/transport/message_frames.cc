#include "rabit_engine/transport/message_frames.h"

#include <algorithm>
#include <cstring>

#include "rabit_engine/base/copy_bytes.h"
#include "rabit_engine/base/told_number.h"
#include "rabit_engine/transport/word_packing.h"

namespace warren {
namespace {

// The maximum length of a packed frame before packing. The data and their code fit the L2 cache together.
constexpr std::size_t kPackedFrameBytes = std::size_t{64} << 10;
// The maximum length of a plain frame whose pieces have been sampled to decide that they are not packed.
constexpr std::size_t kSampledFrameBytes = std::size_t{1} << 20;
// The maximum length of any plain frame; it applies if packing is not considered.
constexpr std::size_t kPlainFrameBytes = std::size_t{1} << 30;

}  // namespace

void FrameWriter::Begin(std::span<const std::byte> tag, std::span<const std::byte> message) {
  message_ = message;
  frame_begin_ = 0;
  frame_bytes_ = 0;
  CopyBytes(head_.data(), tag.data(), tag.size());
  head_bytes_ = tag.size();
  head_sent_ = 0;
}

bool FrameWriter::Advance(Link& link) {
  if (frame_bytes_ == 0) BeginFrame(link);
  const std::size_t head_left = head_bytes_ - head_sent_;
  const std::size_t offered = std::min(body_.size(), kTurnBytes);
  const std::size_t taken =
      head_left > 0 ? link.TrySendWithHead(head_.data() + head_sent_, head_left, body_.data(), offered)
                    : link.TrySend(body_.data(), offered);
  const std::size_t taken_of_head = std::min(taken, head_left);
  head_sent_ += taken_of_head;
  body_ = body_.subspan(taken - taken_of_head);
  if (head_sent_ == head_bytes_ && body_.empty()) {
    frame_begin_ += frame_bytes_;
    frame_bytes_ = head_bytes_ = head_sent_ = 0;
  }
  return taken == head_left + offered;
}

void FrameWriter::BeginFrame(Link& link) {
  const std::span<const std::byte> left = message_.subspan(frame_begin_);
  const double most = left.size() < kMinFramedBytes ? 0 : link.MaxPackedShare(frame_begin_ == 0);
  FrameHead head;
  if (most <= 0) {
    head.bytes = static_cast<std::uint32_t>(std::min(left.size(), kPlainFrameBytes));
  } else {
    const auto piece_at = [&](std::size_t at) {
      return left.subspan(at, std::min(left.size() - at, kPackedFrameBytes));
    };
    const auto pays = [&](std::span<const std::byte> piece) { return EstimatePackedShare(piece) < most; };
    const std::span<const std::byte> first = piece_at(0);
    std::size_t bytes = first.size();
    if (pays(first)) {
      head.packed_bytes = Pack(first);
    } else {
      while (bytes < std::min(left.size(), kSampledFrameBytes) && !pays(piece_at(bytes))) {
        bytes += piece_at(bytes).size();
      }
    }
    head.bytes = static_cast<std::uint32_t>(bytes);
  }
  frame_bytes_ = head.bytes;
  if (head.packed_bytes == 0) body_ = left.first(frame_bytes_);
  std::memcpy(head_.data() + head_bytes_, &head, sizeof head);
  head_bytes_ += sizeof head;
}

/// Packs `data` into body_. Returns the length of the code, or 0 (and leaves body_ unchanged) if the code is
/// not shorter than the data.
std::uint32_t FrameWriter::Pack(std::span<const std::byte> data) {
  if (!code_) code_ = std::make_unique_for_overwrite<std::byte[]>(PackingCapacity(kPackedFrameBytes));
  const std::size_t bytes = PackWords(data, code_.get());
  if (bytes >= data.size()) return 0;
  body_ = {code_.get(), bytes};
  return static_cast<std::uint32_t>(bytes);
}

void FrameReader::Reset() {
  head_received_ = plain_left_ = 0;
  ready_ = {};
}

std::size_t FrameReader::TryReceive(Link& link, void* to, std::size_t bytes) {
  auto* const begin = static_cast<std::byte*>(to);
  std::size_t done = 0;
  while (done < bytes) {
    const std::size_t wanted = bytes - done;
    if (!ready_.empty()) {
      const std::size_t taken = std::min(wanted, ready_.size());
      std::memcpy(begin + done, ready_.data(), taken);
      ready_ = ready_.subspan(taken);
      done += taken;
      continue;
    }
    if (plain_left_ > 0) {
      const std::size_t asked = std::min(wanted, plain_left_);
      const std::size_t received = link.TryReceive(begin + done, asked);
      plain_left_ -= received;
      done += received;
      if (received < asked) break;
      continue;
    }
    if (head_received_ < sizeof head_ && !ReceiveHead(link)) break;
    if (plain_left_ > 0) continue;
    code_received_ += link.TryReceive(code_.get() + code_received_, head_.packed_bytes - code_received_);
    if (code_received_ < head_.packed_bytes) break;
    const bool fits = wanted >= head_.bytes;
    if (!fits && !data_) data_ = std::make_unique_for_overwrite<std::byte[]>(kPackedFrameBytes);
    const std::span<std::byte> data(fits ? begin + done : data_.get(), head_.bytes);
    if (!UnpackWords({code_.get(), head_.packed_bytes}, data)) ThrowOtherVersion("packed frame");
    if (fits) {
      done += data.size();
    } else {
      ready_ = data;
    }
    head_received_ = 0;
  }
  return done;
}

/// Receives more of the head. Returns whether it is complete; if so, prepares for the frame's bytes. Throws
/// EngineError if it is invalid.
bool FrameReader::ReceiveHead(Link& link) {
  head_received_ +=
      link.TryReceive(reinterpret_cast<std::byte*>(&head_) + head_received_, sizeof head_ - head_received_);
  if (head_received_ < sizeof head_) return false;
  const bool packed = head_.packed_bytes > 0;
  const std::size_t most = packed ? kPackedFrameBytes : kPlainFrameBytes;
  if (head_.bytes == 0 || head_.bytes > most || head_.packed_bytes >= head_.bytes) ThrowOtherVersion("frame");
  if (!packed) {
    plain_left_ = head_.bytes;
    head_received_ = 0;
    return true;
  }
  if (!code_) code_ = std::make_unique_for_overwrite<std::byte[]>(kPackedFrameBytes + kUnpackSlack);
  code_received_ = 0;
  return true;
}

}  // namespace warren
