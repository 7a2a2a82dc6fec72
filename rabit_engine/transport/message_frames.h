// The division of long messages into frames, for links over a network. A frame is packed (word_packing.h) if
// the sender estimates that packing takes less time than sending the bytes that it saves; otherwise it is
// plain. The receiver needs to know only the length of the message.
//
//   FrameHead      the frame's length without and with packing
//   bytes          the data, plain or packed
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "rabit_engine/call/call_tag.h"
#include "rabit_engine/transport/transport.h"

namespace warren {

/// The header of a frame, sent in its memory layout.
struct FrameHead {
  std::uint32_t bytes = 0;         ///< length without packing
  std::uint32_t packed_bytes = 0;  ///< length with packing; 0 if the frame is plain
};

/// Calls that move fewer bytes do not send frames. If fewer bytes of a message are left, they are sent in a
/// plain frame.
inline constexpr std::size_t kMinFramedBytes = 2048;

/// Sends messages over one link, one after the other. Not thread-safe.
class FrameWriter {
 public:
  /// Begins a message. `tag`, which is copied, precedes the first frame; it is at most as long as a CallTag.
  /// `message` must stay valid and unchanged until finished() returns true.
  void Begin(std::span<const std::byte> tag, std::span<const std::byte> message);
  /// Sends a part of the message, without waiting. Returns false if the link took less than it was offered.
  bool Advance(Link& link);
  bool finished() const { return frame_begin_ == message_.size(); }

 private:
  void BeginFrame(Link& link);
  std::uint32_t Pack(std::span<const std::byte> data);

  std::span<const std::byte> message_;
  std::size_t frame_begin_ = 0;  ///< the frame's position in the message
  std::size_t frame_bytes_ = 0;  ///< the frame's length without packing; 0 between frames
  std::array<std::byte, sizeof(CallTag) + sizeof(FrameHead)> head_;
  std::size_t head_bytes_ = 0;
  std::size_t head_sent_ = 0;
  std::span<const std::byte> body_;  ///< the bytes of the frame that have not been sent yet
  std::unique_ptr<std::byte[]> code_;
};

/// Receives the frames that arrive on one link. Not thread-safe.
class FrameReader {
 public:
  /// Prepares for the frames of another call or link.
  void Reset();
  /// Like Link::TryReceive, but receives the data in the frames, unpacked. Also throws EngineError if the
  /// peer's bytes are not valid frames.
  std::size_t TryReceive(Link& link, void* to, std::size_t bytes);

 private:
  bool ReceiveHead(Link& link);

  FrameHead head_;
  std::size_t head_received_ = 0;
  std::size_t plain_left_ = 0;  ///< bytes left of a plain frame
  std::size_t code_received_ = 0;
  std::span<const std::byte> ready_;  ///< unpacked bytes that have not been returned yet
  std::unique_ptr<std::byte[]> code_;
  std::unique_ptr<std::byte[]> data_;
};

}  // namespace warren
