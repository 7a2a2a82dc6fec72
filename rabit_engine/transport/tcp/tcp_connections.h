// Private to TcpTransport, whose code is in five files (tcp_transport.cc, tcp_accepting.cc,
// tcp_connecting.cc, tcp_notices.cc, and tcp_events_epoll.cc or tcp_events_poll.cc): the connections that
// are not links yet, the keys that identify the connection of an event, and what several of these files use.
#pragma once

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "rabit_engine/transport/tcp/tcp_transport.h"

namespace warren {

// The kind of descriptor that an event concerns. An event key holds the kind in its upper bits, and a rank or
// a connection's number in the lower ones.
enum class Subject : std::uint64_t {
  kLink = 0,
  kListener = 1,
  kPending = 2,
  kDial = 3,
  kQuestion = 4,
  kInterrupt = 5
};
inline constexpr int kSubjectShift = 60;
constexpr std::uint64_t Key(Subject subject, std::uint64_t number) {
  return static_cast<std::uint64_t>(subject) << kSubjectShift | number;
}
constexpr Subject SubjectOf(std::uint64_t key) {
  return static_cast<Subject>(key >> kSubjectShift);
}
constexpr std::uint64_t NumberOf(std::uint64_t key) {
  return key & ((std::uint64_t{1} << kSubjectShift) - 1);
}

/// The interval at which a waiting rank checks on the others.
inline constexpr std::chrono::milliseconds kWakeUp{200};

/// Returns the milliseconds until the deadline, at most kWakeUp; after the deadline a quarter of kWakeUp,
/// because a wait may continue (WaitObserver::WhoIsLate).
inline int MillisecondsToWait(Clock::time_point deadline) {
  const auto limit = static_cast<int>(kWakeUp.count());
  return Clock::now() < deadline ? tcp::MillisecondsUntil(deadline, limit) : limit / 4;
}

/// Opens a descriptor that is closed when another one is needed although the process has no more.
inline CloseOnForkDescriptor OpenSpare() {
  return CloseOnForkDescriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

/// Sends a handshake message on a fresh connection, whose send buffer has space for all of it. Returns false
/// if the connection is broken.
template <typename Message>
bool SendWhole(tcp::Stream& stream, const Message& message) {
  return stream.Send(&message, sizeof message) == sizeof message;
}

// A message of the handshake, collected as its bytes arrive.
template <typename Message>
struct MessageBuffer {
  std::array<std::byte, sizeof(Message)> bytes;
  std::size_t count = 0;

  enum class State { kMore, kWhole, kEnded };
  State Read(tcp::Stream& stream, int& error) {
    error = 0;
    while (count < bytes.size()) {
      const ssize_t got = stream.Receive(bytes.data() + count, bytes.size() - count);
      if (got > 0) {
        count += static_cast<std::size_t>(got);
        if (std::is_same_v<Message, tcp::Hello> && !tcp::MayBeHello({bytes.data(), count}))
          return State::kEnded;
      } else if (got == 0) {
        return State::kEnded;
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        return State::kMore;
      } else if (errno != EINTR) {
        error = errno;
        return State::kEnded;
      }
    }
    return State::kWhole;
  }
};
using HelloBuffer = MessageBuffer<tcp::Hello>;
using ProofBuffer = MessageBuffer<wire::Digest>;

/// A connection whose peer has not proved its rank yet.
struct TcpTransport::PendingConnection {
  tcp::Stream stream;
  Clock::time_point deadline;
  HelloBuffer hello = {};
  int peer = -1;               ///< the claimed rank, or -1 until this rank has answered
  wire::Digest expected = {};  ///< the proof expected from `peer`, set together with it
  ProofBuffer proof = {};
};

/// An outgoing link that is being made.
struct TcpTransport::Dial {
  enum class Step { kPause, kConnecting, kHandshake, kAnswer };

  int peer = -1;
  Step step = Step::kPause;
  Clock::time_point deadline = kNoDeadline;  ///< the deadline of the current step
  std::size_t next_address = 0;
  int round = 0;  ///< number of completed rounds over all addresses
  tcp::Stream stream;
  tcp::Address address;
  tcp::Hello hello;
  HelloBuffer answer;
  tcp::ConnectFailures failures;  ///< failures of the current round
};

}  // namespace warren
