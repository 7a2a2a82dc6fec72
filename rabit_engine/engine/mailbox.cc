#include "rabit_engine/engine/mailbox.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

#include "posix/thread.h"
#include "rabit_engine/base/error.h"
#include "rabit_engine/base/shortage.h"

namespace warren {
namespace {

// How much later than by Transport::Wait an overdue message is reported while other messages keep moving.
constexpr std::chrono::milliseconds kBusyGrace{500};
// How many times messages are moved before the deadlines are checked again, and how many messages of one rank
// are received at a time. Without these limits, ranks that send all the time would delay the check forever.
constexpr int kMostTurns = 64;
constexpr int kMostInARow = 64;

}  // namespace

Mailbox::Mailbox(std::unique_ptr<Communicator> communicator, Transport* transport,
                 std::chrono::milliseconds patience)
    : communicator_(std::move(communicator)), transport_(transport), patience_(patience) {
  for (int rank = 0; rank < world_size(); ++rank) {
    peers_.emplace_back();
    peers_.back().rank = communicator_->rank_in_job(rank);
  }
}

Mailbox::~Mailbox() {
  if (NumForks() != num_forks_) {
    if (thread_.joinable()) thread_.detach();  // a forked child has no such thread
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    changed_.notify_one();
    if (is_in_transport_) transport_->Interrupt();
  }
  if (thread_.joinable()) thread_.join();
}

void Mailbox::Send(int to, std::uint64_t tag, const void* data, std::size_t bytes,
                   std::chrono::milliseconds patience, Ended ended) {
  // The const_cast is safe: data to be sent is only read.
  Post({true, to, {tag, bytes}, const_cast<void*>(data), Deadline(patience), std::move(ended)});
}

void Mailbox::Receive(int from, std::uint64_t tag, void* data, std::size_t bytes,
                      std::chrono::milliseconds patience, Ended ended) {
  Post({false, from, {tag, bytes}, data, Deadline(patience), std::move(ended)});
}

bool Mailbox::EndsOnThisThread() {
  const std::lock_guard lock(mutex_);
  return thread_.get_id() == std::this_thread::get_id();
}

Clock::time_point Mailbox::Deadline(std::chrono::milliseconds patience) const {
  if (patience.count() == 0) patience = patience_;
  return patience.count() == 0 ? kNoDeadline : Clock::now() + patience;
}

void Mailbox::Post(PendingTransfer operation) {
  if (NumForks() != num_forks_) {
    throw Misuse(
        "only the process that joined the job can send and receive messages, and this one was forked from it");
  }
  std::unique_lock lock(mutex_);
  if (error_) {
    const std::exception_ptr error = error_;
    lock.unlock();
    return operation.ended(error, operation.peer);
  }
  if (!thread_.joinable()) StartThread();
  posted_.push_back(std::move(operation));
  changed_.notify_one();
  if (is_in_transport_) transport_->Interrupt();
}

void Mailbox::StartThread() {
  const posix::SignalsBlocked blocked;  // also in the new thread: signals are for the program's threads
  try {
    thread_ = std::thread([this] { Serve(); });
  } catch (const std::system_error& error) {
    ThrowShortage("messages need a thread of this process", "pthread_create", error.code().value());
  }
}

// --- the thread --------------------------------------------------------------------------------------------

void Mailbox::Serve() {
  try {
    for (;;) {
      Clock::time_point deadline = kNoDeadline;
      const std::vector<Interest> interests = Interests(deadline);
      // Wait looks at the deadline only if nothing can move: never, if other ranks send all the time.
      if (!interests.empty() && deadline != kNoDeadline && Clock::now() >= deadline + kBusyGrace) {
        const int late = FirstOf(interests, transport_->rank());
        throw TimedOut(
            fmt::format("rank {} has waited longer for a message of rank {} than its timeout allows "
                        "(rabit_timeout_sec, or the call's own timeout), while other messages came",
                        transport_->rank(), late),
            late);
      }
      {
        std::unique_lock lock(mutex_);
        if (posted_.empty() && interests.empty())
          changed_.wait(lock, [&] { return ends_ || !posted_.empty(); });
        if (ends_) break;
        is_in_transport_ = posted_.empty();
      }
      if (is_in_transport_) {  // can be read without the lock: only this thread writes it
        transport_->Wait(interests, deadline);
        const std::lock_guard lock(mutex_);
        is_in_transport_ = false;
        transport_->Resume();
      }
      TakePosted();
      for (int turn = 0; turn < kMostTurns && MoveAll(); ++turn) TakePosted();
    }
    FailAll(std::make_exception_ptr(
        EngineError("the communicator of this message was left before the message was complete")));
  } catch (const PeerError& error) {
    transport_->Abort(error.rank() >= 0 ? error.rank() : transport_->rank(), error.shortage());
    FailAll(std::current_exception());
  } catch (const LocalShortage& error) {
    transport_->Abort(transport_->rank(), error.error());
    FailAll(std::current_exception());
  } catch (...) {
    transport_->Abort(transport_->rank());
    FailAll(std::current_exception());
  }
}

void Mailbox::TakePosted() {
  std::vector<PendingTransfer> posted;
  {
    const std::lock_guard lock(mutex_);
    posted.swap(posted_);
  }
  for (PendingTransfer& operation : posted) {
    if (operation.is_send) {
      peers_[operation.peer].sends.push_back(std::move(operation));
      continue;
    }
    const std::uint64_t id = ++last_id_;
    const int from = operation.peer;
    const std::uint64_t tag = operation.header.tag;
    receives_.emplace(id, std::move(operation));
    if (const auto message = matching_.Post(id, from, tag)) {
      messages_.at(*message).receive = id;
      if (messages_.at(*message).is_whole()) Finish(*message);
    }
  }
}

bool Mailbox::MoveAll() {
  bool moved = false;
  for (Peer& peer : peers_) {
    moved |= MoveSends(peer);
    moved |= MoveReceives(peer);
  }
  return moved;
}

bool Mailbox::MoveSends(Peer& peer) {
  bool moved = false;
  while (!peer.sends.empty()) {
    PendingTransfer& operation = peer.sends.front();
    const std::size_t whole = sizeof(Header) + operation.header.bytes;
    const auto* head = reinterpret_cast<const std::byte*>(&operation.header);
    const auto* data = static_cast<const std::byte*>(operation.data);
    Link& link = transport_->To(peer.rank);
    const std::size_t taken =
        peer.sent < sizeof(Header)
            ? link.TrySendWithHead(head + peer.sent, sizeof(Header) - peer.sent, data, operation.header.bytes)
            : link.TrySend(data + (peer.sent - sizeof(Header)), whole - peer.sent);
    peer.sent += taken;
    moved |= taken > 0;
    if (peer.sent < whole) break;
    peer.sent = 0;
    const PendingTransfer done = std::move(operation);
    peer.sends.pop_front();
    done.ended(nullptr, rank());
  }
  return moved;
}

bool Mailbox::MoveReceives(Peer& peer) {
  bool moved = false;
  const int from = static_cast<int>(&peer - peers_.data());
  for (int i = 0; i < kMostInARow; ++i) {
    if (!peer.incoming) {
      if (!matching_.AwaitsFrom(from) || from == rank()) return moved;
      const std::size_t taken = transport_->To(peer.rank).TryReceive(
          reinterpret_cast<std::byte*>(&peer.header) + peer.header_bytes, sizeof(Header) - peer.header_bytes);
      moved |= taken > 0;
      peer.header_bytes += taken;
      if (peer.header_bytes < sizeof(Header)) return moved;
      peer.header_bytes = 0;
      peer.incoming = ++last_id_;
      ArrivingMessage& message = messages_[*peer.incoming];
      message.from = from;
      message.header = peer.header;
      message.receive = matching_.Arrive(*peer.incoming, from, peer.header.tag);
    }
    ArrivingMessage& message = messages_.at(*peer.incoming);
    if (!message.receive && !message.is_aside) {
      if (!matching_.AwaitsFrom(from)) return moved;
      message.is_aside = true;  // a matching message may come after this one
      message.aside.resize(message.header.bytes);
    }
    const std::size_t before = message.done;
    if (!MoveBytes(peer, message)) return moved || message.done > before;
    moved = true;
    const std::uint64_t id = *std::exchange(peer.incoming, std::nullopt);
    if (message.receive) Finish(id);
  }
  return moved;
}

/// Receives as many bytes of the message as have arrived. Returns whether the message is complete.
bool Mailbox::MoveBytes(Peer& peer, ArrivingMessage& message) {
  std::byte* to = message.aside.data();
  if (message.receive && !message.is_aside) {
    const PendingTransfer& receive = receives_.at(*message.receive);
    if (receive.header.bytes == message.header.bytes) {
      to = static_cast<std::byte*>(receive.data);
    } else {  // this receive fails; later messages are unaffected
      message.is_aside = true;
      message.aside.resize(message.header.bytes);
      to = message.aside.data();
    }
  }
  while (!message.is_whole()) {
    const std::size_t taken =
        transport_->To(peer.rank).TryReceive(to + message.done, message.header.bytes - message.done);
    if (taken == 0) return false;
    message.done += taken;
  }
  return true;
}

/// Ends the receive of a complete message, with an error if the lengths differ.
void Mailbox::Finish(std::uint64_t id) {
  const auto message = messages_.extract(id);
  const auto receive = receives_.extract(*message.mapped().receive);
  const PendingTransfer& operation = receive.mapped();
  const ArrivingMessage& got = message.mapped();
  std::exception_ptr error;
  if (operation.header.bytes != got.header.bytes) {
    error = std::make_exception_ptr(Refused(
        fmt::format("rank {} sent {} bytes with tag {}, but this rank expects {}", peers_[got.from].rank,
                    got.header.bytes, got.header.tag, operation.header.bytes)));
  } else if (got.is_aside && !got.aside.empty()) {
    std::memcpy(operation.data, got.aside.data(), got.aside.size());
  }
  operation.ended(error, got.from);
}

/// Returns the interests that the thread waits for, and sets `deadline` to the earliest deadline of all
/// messages. The first interest is the peer whose messages have the earliest deadline.
std::vector<Interest> Mailbox::Interests(Clock::time_point& deadline) const {
  std::vector<Interest> interests;
  std::vector<Clock::time_point> deadlines(peers_.size(), kNoDeadline);
  Clock::time_point of_any = kNoDeadline;
  for (const auto& [id, receive] : receives_) {
    Clock::time_point& of = receive.peer == MessageMatching::kAnyRank ? of_any : deadlines[receive.peer];
    of = std::min(of, receive.deadline);
  }
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const Peer& peer = peers_[i];
    const int from = static_cast<int>(i);
    if (from == rank()) continue;
    const bool has_wanted =
        peer.incoming && (messages_.at(*peer.incoming).receive || messages_.at(*peer.incoming).is_aside);
    const Interest interest{peer.rank, !peer.sends.empty(), has_wanted || matching_.AwaitsFrom(from)};
    for (const PendingTransfer& send : peer.sends) deadlines[i] = std::min(deadlines[i], send.deadline);
    if (!interest.to_send && !interest.to_receive) continue;
    interests.push_back(interest);
    if (deadlines[i] < deadline) {
      deadline = deadlines[i];
      std::swap(interests.front(), interests.back());
    }
  }
  deadline = std::min(deadline, of_any);
  return interests;
}

void Mailbox::FailAll(const std::exception_ptr& error) {
  std::vector<PendingTransfer> failed;
  {
    const std::lock_guard lock(mutex_);
    error_ = error;
    is_in_transport_ = false;
    failed.swap(posted_);
  }
  for (Peer& peer : peers_) {
    std::move(peer.sends.begin(), peer.sends.end(), std::back_inserter(failed));
    peer.sends.clear();
  }
  for (auto& [id, receive] : receives_) failed.push_back(std::move(receive));
  receives_.clear();
  messages_.clear();
  for (const PendingTransfer& operation : failed) operation.ended(error, operation.peer);
}

}  // namespace warren
