// Long messages over a network, in frames. A frame is plain, or packed (word_packing.h) if the sender finds
// that this takes less time than the bytes it saves. The receiver needs to know only the length of the
// message.
//
//   FrameHead      the lengths of the frame without and with packing
//   bytes          as they are, or packed
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "rabit_engine/call/call_tag.h"
#include "rabit_engine/transport/transport.h"

namespace warren {

/// Sent in its memory layout.
struct FrameHead {
  std::uint32_t bytes = 0;
  std::uint32_t packed_bytes = 0;  ///< 0 if the frame is plain
};

/// Calls that move fewer bytes have no frames, and shorter messages only plain ones.
inline constexpr std::size_t kMinFramedBytes = 2048;

/// Sends messages to one link, one after the other. Not thread-safe.
class FrameWriter {
 public:
  /// Begins a message. `tag` (at most a CallTag) precedes its first frame. The message must not change and
  /// must stay where it is until finished().
  void Begin(std::span<const std::byte> tag, std::span<const std::byte> message);
  /// Sends some of the message, without waiting. Returns false if the link took less than it was offered.
  bool Advance(Link& link);
  bool finished() const { return frame_begin_ == message_.size(); }

 private:
  void BeginFrame(Link& link);
  std::uint32_t Pack(std::span<const std::byte> data);

  std::span<const std::byte> message_;
  std::size_t frame_begin_ = 0;  ///< position in the message
  std::size_t frame_bytes_ = 0;  ///< without packing; 0 between frames
  std::array<std::byte, sizeof(CallTag) + sizeof(FrameHead)> head_;
  std::size_t head_bytes_ = 0;
  std::size_t head_sent_ = 0;
  std::span<const std::byte> body_;  ///< what is left to be sent of the frame's bytes
  std::unique_ptr<std::byte[]> code_;
};

/// Reads the frames that arrive on one link. Not thread-safe.
class FrameReader {
 public:
  /// Prepares for the frames of another call or link.
  void Reset();
  /// Like Link::TryReceive, but returns the bytes in the frames. Throws EngineError if the peer does not send
  /// frames.
  std::size_t TryReceive(Link& link, void* to, std::size_t bytes);

 private:
  bool ReceiveHead(Link& link);

  FrameHead head_;
  std::size_t head_received_ = 0;
  std::size_t plain_left_ = 0;  ///< bytes left of a plain frame
  std::size_t code_received_ = 0;
  std::span<const std::byte> ready_;  ///< unpacked bytes
  std::unique_ptr<std::byte[]> code_;
  std::unique_ptr<std::byte[]> data_;
};

}  // namespace warren
