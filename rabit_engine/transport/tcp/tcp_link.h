// One TCP connection as a link. The stream is raw: nothing is added to the bytes (except TLS if requested),
// so a large message costs only what the kernel needs for it. Therefore a rank that gives up does not use
// this stream to inform its peers; see tcp_transport.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "rabit_engine/transport/tcp/packing_policy.h"
#include "rabit_engine/transport/tcp/stream.h"
#include "rabit_engine/transport/transport.h"

namespace warren {

class TcpLink final : public Link {
 public:
  /// The transport that owns the link.
  class Owner {
   public:
    /// Throws LostPeer with the reason, if the peer or another rank has sent one. `seen` is the reason
    /// otherwise, e.g. "it closed the connection".
    [[noreturn]] virtual void ThrowLost(int peer, const std::string& seen) = 0;
    /// Called if the connection has ended but received data has not been read yet.
    virtual void NoteEnd() = 0;
    /// Enables or disables the event that reports new space for sending.
    virtual void WatchForRoom(const TcpLink& link, bool watch) = 0;

   protected:
    ~Owner() = default;
  };

  TcpLink(Owner& owner, int peer, tcp::Stream stream, Packing packing);

  std::size_t TrySend(const void* data, std::size_t bytes) override;
  std::size_t TrySendWithHead(const void* head, std::size_t head_bytes, const void* data,
                              std::size_t bytes) override;
  std::size_t TryReceive(void* data, std::size_t bytes) override;
  bool has_frames() const override { return true; }
  double MaxPackedShare(bool begins_message) override;

  int peer() const { return peer_; }
  int fd() const { return stream_.fd(); }
  /// The peer's address, for messages: "10.0.0.3:40112".
  const std::string& address() const { return address_; }

  /// Notes an event, given as poll(2) event bits. Epoll reports each change only once, so the event is
  /// remembered here until a call finds the socket empty or full.
  void Note(std::uint32_t events);
  bool may_send() const { return may_send_; }
  bool may_receive() const { return may_receive_ || stash_begin_ < stash_end_; }
  /// Whether the last TryReceive was small enough to go through this link's buffer.
  bool awaits_little() const { return awaits_little_; }
  /// If this link's buffer is empty, fills it with data that has arrived. Throws LostPeer if the peer is
  /// gone.
  void ReadAhead();
  /// Whether the peer will send nothing more, or the connection is broken.
  bool ended() const { return ended_; }
  /// Describes how the connection ended, if known.
  std::string DescribeEnd() const;
  /// Whether the peer's host has left packets unanswered for about `timeout`. Must be called regularly. By
  /// default, the kernel gives up only after about 15 minutes.
  bool HostIsSilent(Clock::time_point now, std::chrono::seconds timeout);
  // Totals since the link was made.
  std::uint64_t bytes_sent() const { return bytes_sent_; }
  std::uint64_t bytes_received() const { return bytes_received_; }
  /// Whether the peer has acknowledged everything sent so far and has no space for the data that is still
  /// queued here.
  bool IsFull() const;
  /// Closes the sending side; the peer reads the end of the stream.
  void CloseSending();

 private:
  std::size_t Receive(void* data, std::size_t bytes);
  std::size_t FailedSend(int error);
  void ThrowIfShort(const char* call, int error) const;
  void NoteFull();

  Owner& owner_;
  int peer_;
  tcp::Stream stream_;
  std::string address_;
  tcp::PackingPolicy packing_;
  unsigned frames_ = 0;    ///< number of frames begun, if the policy needs the progress
  unsigned messages_ = 0;  ///< number of messages begun since the policy last received the progress
  bool may_send_ = true;
  bool watched_for_room_ = false;
  bool may_receive_ = true;
  bool awaits_little_ = false;
  bool ended_ = false;
  int error_ = 0;
  std::uint64_t bytes_sent_ = 0;
  std::uint64_t bytes_received_ = 0;
  Clock::time_point silent_since_ = kNoDeadline;
  // A buffer for small reads, so that a tag and the few bytes after it cost one system call.
  std::size_t stash_begin_ = 0;
  std::size_t stash_end_ = 0;
  std::array<std::byte, 8192> stash_;
};

}  // namespace warren
