// Messages with tags: any number of them may be in progress between any two ranks. Messages with different
// tags or in different directions are not ordered. A thread transfers them over links that only the mailbox
// uses.
//
// A message is a header (its tag and length, 16 bytes in the machines' byte order) followed by the data. Each
// pair of ranks has one stream per direction. The data of a message that no receive matches is left unread,
// so that long messages stay with their senders, unless a matching message may follow it in the stream; then
// it is read into memory. message_matching.h assigns messages to receives.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "rabit_engine/base/descriptor.h"
#include "rabit_engine/base/tagged_messages.h"
#include "rabit_engine/call/communicator.h"
#include "rabit_engine/engine/message_matching.h"
#include "rabit_engine/transport/transport.h"

namespace warren {

class Mailbox final : public TaggedMessages {
 public:
  /// `communicator` must not be used for anything else. `transport` is the communicator's transport, linked
  /// to all ranks (nullptr if there is only one rank). `patience`: the default timeout of messages; 0 waits
  /// forever.
  Mailbox(std::unique_ptr<Communicator> communicator, Transport* transport,
          std::chrono::milliseconds patience);
  /// Messages in progress end with an EngineError.
  ~Mailbox() override;
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  int rank() const override { return communicator_->rank(); }
  int world_size() const override { return communicator_->world_size(); }
  bool EndsOnThisThread() override;
  void Send(int to, std::uint64_t tag, const void* data, std::size_t bytes,
            std::chrono::milliseconds patience, Ended ended) override;
  void Receive(int from, std::uint64_t tag, void* data, std::size_t bytes, std::chrono::milliseconds patience,
               Ended ended) override;

 private:
  struct Header {
    std::uint64_t tag = 0;
    std::uint64_t bytes = 0;
  };
  struct PendingTransfer {
    bool is_send = false;
    int peer = -1;
    Header header;
    void* data = nullptr;
    Clock::time_point deadline;
    Ended ended;
  };
  /// A message whose header has arrived.
  struct ArrivingMessage {
    int from = -1;
    Header header;
    std::size_t done = 0;
    /// A buffer for the data if no receive matches the message yet but it must be read, or if its length
    /// differs from that of its receive.
    std::vector<std::byte> aside;
    bool is_aside = false;
    std::optional<std::uint64_t> receive;  ///< the id of the matching receive

    bool is_whole() const { return done == header.bytes; }
  };
  struct Peer {
    int rank = -1;  ///< in the numbering of the transport
    std::deque<PendingTransfer> sends;
    std::size_t sent = 0;  ///< bytes of sends.front() that have been sent, header included
    Header header;
    std::size_t header_bytes = 0;           ///< bytes of the header that have arrived
    std::optional<std::uint64_t> incoming;  ///< the id of the message whose data comes next in the stream
  };

  Clock::time_point Deadline(std::chrono::milliseconds patience) const;
  void Post(PendingTransfer operation);
  void StartThread();
  void Serve();
  void TakePosted();
  bool MoveAll();
  bool MoveSends(Peer& peer);
  bool MoveReceives(Peer& peer);
  bool MoveBytes(Peer& peer, ArrivingMessage& message);
  void Finish(std::uint64_t message);
  std::vector<Interest> Interests(Clock::time_point& deadline) const;
  void FailAll(const std::exception_ptr& error);

  std::unique_ptr<Communicator> communicator_;
  Transport* transport_;
  const std::chrono::milliseconds patience_;
  const std::uint64_t num_forks_ = NumForks();

  // --- used by the thread only ---
  std::vector<Peer> peers_;  ///< by rank; this rank's entry is not used
  MessageMatching matching_;
  std::map<std::uint64_t, PendingTransfer> receives_;  ///< pending receives, by id
  std::map<std::uint64_t, ArrivingMessage> messages_;  ///< messages that have begun to arrive, by id
  std::uint64_t last_id_ = 0;

  std::mutex mutex_;  ///< guards the members below
  std::condition_variable changed_;
  std::vector<PendingTransfer> posted_;
  bool is_in_transport_ = false;
  bool ends_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace warren
