// Messages with tags: any number of them under way at once between any two ranks, without an order among
// different tags or between the two directions. A thread carries them, over links of its own.
//
// A message is a header (tag, bytes: 16 bytes, in the machines' byte order) and its bytes, in one stream for
// each pair of ranks and direction. What nobody wants is not read: long messages stay with their senders.
// Only a message that is in the way of one that is wanted, since it was sent before it, is put aside in
// memory. message_matching.h decides which message is for which receive.
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

#include "rabit_engine/base/communicator.h"
#include "rabit_engine/base/descriptor.h"
#include "rabit_engine/base/tagged_messages.h"
#include "rabit_engine/engine/message_matching.h"
#include "rabit_engine/transport/transport.h"

namespace warren {

class Mailbox final : public TaggedMessages {
 public:
  /// `communicator` is nobody else's, and `transport` its, with links to all (null in a world of one);
  /// `patience`: of messages without their own, 0: without end.
  Mailbox(std::unique_ptr<Communicator> communicator, Transport* transport,
          std::chrono::milliseconds patience);
  /// What has not ended ends with an error.
  ~Mailbox() override;
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  int rank() const override { return communicator_->rank(); }
  int world_size() const override { return communicator_->world_size(); }
  void Send(int to, std::uint64_t tag, const void* data, std::size_t bytes,
            std::chrono::milliseconds patience, Ended ended) override;
  void Receive(int from, std::uint64_t tag, void* data, std::size_t bytes, std::chrono::milliseconds patience,
               Ended ended) override;

 private:
  struct Header {
    std::uint64_t tag = 0;
    std::uint64_t bytes = 0;
  };
  struct Operation {
    bool is_send = false;
    int peer = -1;
    Header header;
    void* data = nullptr;
    Clock::time_point deadline;
    Ended ended;
  };
  /// One whose header has come.
  struct Message {
    int from = -1;
    Header header;
    std::size_t done = 0;
    std::vector<std::byte> aside;  ///< where it goes when it is in the way, or of another length
    bool is_aside = false;
    std::optional<std::uint64_t> receive;  ///< that it is for

    bool is_whole() const { return done == header.bytes; }
  };
  struct Peer {
    int rank = -1;  ///< as the transport counts
    std::deque<Operation> sends;
    std::size_t sent = 0;  ///< of the first, with its header
    Header header;
    std::size_t header_bytes = 0;           ///< that have come
    std::optional<std::uint64_t> incoming;  ///< the message whose bytes come next
  };

  Clock::time_point Deadline(std::chrono::milliseconds patience) const;
  void Post(Operation operation);
  void StartThread();
  void Serve();
  void TakePosted();
  bool MoveAll();
  bool MoveSends(Peer& peer);
  bool MoveReceives(Peer& peer);
  bool MoveBytes(Peer& peer, Message& message);
  void Finish(std::uint64_t message);
  std::vector<Interest> Interests(Clock::time_point& deadline) const;
  void FailAll(const std::exception_ptr& error);

  std::unique_ptr<Communicator> communicator_;
  Transport* transport_;
  const std::chrono::milliseconds patience_;
  const std::uint64_t num_forks_ = NumForks();

  // --- the thread's own ---
  std::vector<Peer> peers_;  ///< by rank; this one's is not used
  MessageMatching matching_;
  std::map<std::uint64_t, Operation> receives_;  ///< without their bytes
  std::map<std::uint64_t, Message> messages_;    ///< that have begun to come
  std::uint64_t last_id_ = 0;

  std::mutex mutex_;  ///< of those below
  std::condition_variable changed_;
  std::vector<Operation> posted_;
  bool is_in_transport_ = false;
  bool ends_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace warren
