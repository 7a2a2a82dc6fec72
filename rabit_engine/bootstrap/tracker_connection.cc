#include "rabit_engine/bootstrap/tracker_connection.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <functional>
#include <string_view>
#include <thread>

#include "posix/shortage.h"
#include "rabit_engine/base/error.h"
#include "rabit_engine/base/shortage.h"
#include "rabit_engine/base/tls_context.h"
#include "wire/authentication.h"
#include "wire/vouch.h"

namespace warren {
namespace {

using std::chrono::milliseconds;

// The first and the longest pause between two rounds of attempts to connect. The pause doubles each time; it
// is short at first, because the tracker may be about to start.
constexpr milliseconds kFirstTrackerPause{250};
constexpr milliseconds kMaxTrackerPause{5000};
// The time limit of a tracker's first answer, as a multiple of connect_timeout. The trackers of dmlc-core and
// XGBoost read the workers' hellos one after the other and take 90 s for 1,000 of them.
constexpr int kFirstAnswerPatience = 10;

}  // namespace

TrackerConnection::TrackerConnection(const Settings& settings, const std::function<void(int)>& connected)
    : settings_(settings), tracker_(fmt::format("{}:{}", settings.tracker_host, settings.tracker_port)) {
  Connect();
  if (connected) connected(connection_.fd());
  if (const auto tls = TlsFor(settings_, wire::kTlsToTracker)) {
    Encrypt(*tls);
  } else if (settings_.job_token) {
    Authenticate();
  }
}

TrackerConnection::TrackerConnection(const Settings& settings, const wire::classic::Hello& hello,
                                     const std::string& more)
    : TrackerConnection(settings) {
  ExchangeMagics();
  Send(wire::classic::Encode(hello) + more);
}

void TrackerConnection::Connect() {
  const int rounds = std::max(1, settings_.connect_retry);
  milliseconds pause = kFirstTrackerPause;
  std::string failure;
  for (int round = 1; round <= rounds; ++round) {
    tcp::ConnectFailures failures;
    try {
      for (const tcp::Address& address : tcp::Resolve(settings_.tracker_host, settings_.tracker_port)) {
        int error = 0;
        connection_ =
            tcp::Stream(tcp::ConnectUntil(address, Clock::now() + settings_.connect_timeout, error));
        if (connection_) {
          tcp::PrepareLink(connection_.fd(), true);
          return;
        }
        failures.Add(address, error, tcp::ErrorText(error));
      }
      failure = failures.Text();
    } catch (const LocalShortage&) {
      if (round == rounds) throw;
    } catch (const EngineError& error) {
      failure = error.what();
    }
    if (round == rounds && failures.OwnShortage() != 0) {
      ThrowShortage(fmt::format("this worker cannot connect to the tracker at {}, tried {} times ({})",
                                tracker_, rounds, failure),
                    "socket or connect", failures.OwnShortage());
    }
    if (round == rounds) break;
    std::this_thread::sleep_for(pause);
    pause = std::min(kMaxTrackerPause, pause * 2);
  }
  throw TrackerLost(
      TrackerLost::When::kConnecting,
      fmt::format(
          "the tracker at {} cannot be reached, tried {} times: {}. Is it still running, and are DMLC_TRACKER_URI and DMLC_TRACKER_PORT the values that it printed? A job is over once all workers have left it: start one dmlc-submit for each program that joins.",
          tracker_, rounds, failure));
}

// Waits for more bytes from the tracker and puts them into received_. Returns false if none have arrived by
// the deadline.
bool TrackerConnection::HasReceived(const char* what, Clock::time_point deadline) {
  for (;;) {
    std::array<char, 4096> bytes;
    const ssize_t count = connection_.Receive(bytes.data(), bytes.size());
    if (count > 0) {
      received_.assign(bytes.data(), static_cast<std::size_t>(count));
      return true;
    }
    if (count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
      if (count < 0) ThrowIfShort("recv", errno);
      throw TrackerLost(
          TrackerLost::When::kTalking,
          fmt::format(
              "the tracker at {} closed the connection where {} was expected ({}): it has ended, or refused this worker. See its output for the reason.",
              tracker_, what, count == 0 ? "end of stream" : connection_.TextOf(errno)));
    }
    if (!tcp::WaitFor(connection_.fd(), POLLIN, deadline)) return false;
  }
}

// Gives `reader` what the tracker sends until next(reader) returns a message, and returns that; nullopt at
// the deadline.
template <typename Reader, typename Next>
auto TrackerConnection::ReadOrNothing(Reader& reader, const Next& next, const char* what,
                                      Clock::time_point deadline) {
  try {
    for (;;) {
      auto message = std::invoke(next, reader);
      if (message || !HasReceived(what, deadline)) return message;
      reader.Append(received_);
    }
  } catch (const wire::ProtocolError& error) {
    throw EngineError(fmt::format("the tracker at {} sent an invalid message where {} was expected: {}",
                                  tracker_, what, error.what()));
  }
}

// Like ReadOrNothing, but throws TimedOut at the deadline.
template <typename Reader, typename Next>
auto TrackerConnection::Read(Reader& reader, const Next& next, const char* what, Clock::time_point deadline) {
  if (auto message = ReadOrNothing(reader, next, what, deadline)) return *std::move(message);
  throw TimedOut(fmt::format(
      "the tracker at {} has not sent {} in time: other workers are missing, or it is not a rabit tracker",
      tracker_, what));
}

// After the TLS handshake both sides have proved that they know the token.
void TrackerConnection::Encrypt(const tls::Context& tls) {
  connection_.Encrypt(tls, tls::Role::kClient);
  const int error =
      connection_.HandshakeUntil(Clock::now() + settings_.connect_timeout * kFirstAnswerPatience);
  if (error == 0) return;
  const std::string begin = fmt::format("TLS with the tracker at {} (WARREN_TLS=1): ", tracker_);
  if (error == ETIMEDOUT) throw TimedOut(begin + "it has not answered in time");
  if (error == EPROTO) {
    throw EngineError(fmt::format("{}{}: the process listening there does not know this job's token ({})",
                                  begin, connection_.TextOf(error), wire::kTokenVariable));
  }
  throw TrackerLost(
      TrackerLost::When::kTalking,
      fmt::format(
          "{}{}. It is shutting down, was not started with --tls, or belongs to another job and does not know this job's token ({}). See its output for the reason.",
          begin, error == ECONNRESET ? "it closed the connection" : tcp::ErrorText(error),
          wire::kTokenVariable));
}

void TrackerConnection::Authenticate() {
  const wire::AuthenticationKeys keys(*settings_.job_token);
  const auto deadline = Clock::now() + settings_.connect_timeout * kFirstAnswerPatience;
  wire::Reader reader;
  const auto read = [&](auto next, const char* what) {
    try {
      return Read(reader, next, what, deadline);
    } catch (const TrackerLost& error) {
      // The tracker accepted the connection and then closed it: it is shutting down, belongs to another job,
      // uses no tokens, or expects TLS.
      throw TrackerLost(
          error.when(),
          fmt::format(
              "{} If it says that this worker does not know the job's token ({}), it is another job's tracker; "
              "for a tracker without tokens, such as XGBoost's, unset the token; for one started with --tls, set WARREN_TLS=1.",
              error.what(), wire::kTokenVariable));
    }
  };
  const wire::Nonce own = wire::RandomNonce();
  Send(keys.Hello(own));
  const std::int32_t magic = read(&wire::Reader::Int, "its nonce");
  if (magic != wire::kAuthenticationMagic) {
    throw EngineError(fmt::format(
        "the process listening at {} does not support job tokens, but this worker has one ({}): it is not a Warren tracker, or an old one",
        tracker_, wire::kTokenVariable));
  }
  const wire::Nonce theirs = read(wire::NextDigest, "its nonce");
  Send(std::string(wire::BytesOf(keys.Proof(wire::Party::kWorker, own, theirs))));
  const wire::Digest proof = read(wire::NextDigest, "its proof that it knows the job's token");
  const wire::Digest expected = keys.Proof(wire::Party::kTracker, own, theirs);
  if (!wire::Same(wire::BytesOf(proof), wire::BytesOf(expected))) {
    throw EngineError(fmt::format(
        "the process listening at {} does not know this job's token ({}): it is not this job's tracker",
        tracker_, wire::kTokenVariable));
  }
}

void TrackerConnection::ExchangeMagics() {
  Send(wire::classic::EncodeMagic());
  const auto patience = std::chrono::seconds(settings_.connect_timeout) * kFirstAnswerPatience;
  const std::int32_t magic =
      Read(stream_, &wire::classic::TrackerStream::NextMagic, "its greeting", Clock::now() + patience);
  if (magic != wire::kMagic) {
    throw EngineError(fmt::format(
        "the process listening at {} is not a rabit tracker: it answered {:#010x}, expected {:#010x}. Are DMLC_TRACKER_URI and DMLC_TRACKER_PORT right?",
        tracker_, static_cast<std::uint32_t>(magic), static_cast<std::uint32_t>(wire::kMagic)));
  }
}

void TrackerConnection::Send(const std::string& bytes) {
  const int error = connection_.SendUntil(bytes, Clock::now() + settings_.connect_timeout);
  if (error == 0) return;
  if (error == EAGAIN) {
    throw TimedOut(fmt::format("the tracker at {} has not read this worker's messages for {} s", tracker_,
                               settings_.connect_timeout.count()));
  }
  ThrowIfShort("send", error);
  throw TrackerLost(TrackerLost::When::kTalking,
                    fmt::format("the connection to the tracker at {} broke: {}. See the tracker's output.",
                                tracker_, connection_.TextOf(error)));
}

void TrackerConnection::ThrowIfShort(const char* call, int error) const {
  if (posix::ConcernsAddress(error)) return;
  ThrowIfShortage(fmt::format("this worker cannot talk to the tracker at {}", tracker_), call, error);
}

wire::classic::Assignment TrackerConnection::ReadAssignment(const char* what, Clock::time_point deadline) {
  return Read(stream_, &wire::classic::TrackerStream::NextAssignment, what, deadline);
}

wire::classic::LinkPlan TrackerConnection::ReadLinkPlan(const char* what, Clock::time_point deadline) {
  return Read(stream_, &wire::classic::TrackerStream::NextLinkPlan, what, deadline);
}

std::string TrackerConnection::ReadString(const char* what, std::size_t max_bytes,
                                          Clock::time_point deadline) {
  const auto next = [&](wire::Reader& reader) { return reader.String(what, max_bytes); };
  return Read(strings_, next, what, deadline);
}

std::optional<wire::GenerationMessage> TrackerConnection::HearOfGenerations(Clock::time_point deadline) {
  return ReadOrNothing(strings_, wire::NextGenerationMessage, "news of this worker's generation", deadline);
}

bool TrackerConnection::ReadRelease(Clock::time_point deadline) {
  using wire::classic::TrackerWord;
  bool held = false;
  for (;;) {
    std::int32_t word = 0;
    // The four bytes of a word never arrive in parts: the tracker sends them in one call, and its send buffer
    // has space for them.
    const ssize_t count = connection_.Receive(&word, sizeof word);
    if (count == sizeof word && word == static_cast<std::int32_t>(TrackerWord::kComeBack)) return false;
    if (count == sizeof word && word == static_cast<std::int32_t>(TrackerWord::kHeld)) {
      held = true;
    } else if (count > 0) {
      return true;
    } else if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
      if (!tcp::WaitFor(connection_.fd(), POLLIN, deadline)) {
        throw TimedOut(fmt::format("the tracker at {} still waits for others to end", tracker_));
      }
    } else {
      // A tracker that does not support WaitForOthers closes the connection when all workers have ended. A
      // tracker that supports job tokens sends a word instead.
      if (!held && !settings_.job_token) return true;
      throw TrackerLost(
          TrackerLost::When::kTalking,
          fmt::format("the tracker at {} was lost while this worker waited for the others to end: {}",
                      tracker_, count == 0 ? "end of stream" : connection_.TextOf(errno)));
    }
  }
}

bool TrackerConnection::HasNoted() {
  using wire::classic::TrackerWord;
  std::int32_t word = 0;
  // The four bytes of a word never arrive in parts: the tracker sends them in one call, and its send buffer
  // has space for them.
  const ssize_t count = connection_.Receive(&word, sizeof word);
  if (count == sizeof word && word == static_cast<std::int32_t>(TrackerWord::kNoted)) return true;
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return false;
  const std::string how = count < 0    ? connection_.TextOf(errno)
                          : count == 0 ? "end of stream"
                                       : "it sent an invalid message";
  throw TrackerLost(
      TrackerLost::When::kTalking,
      fmt::format("the tracker at {} was lost before it had noted where this worker listens: {}", tracker_,
                  how));
}

void TrackerConnection::ThrowIfBroken() {
  if (const int error = tcp::ConnectError(connection_.fd()); error != 0) {
    throw TrackerLost(
        TrackerLost::When::kTalking,
        fmt::format(
            "the connection to the tracker at {} broke before the tracker had received everything: {}",
            tracker_, tcp::ErrorText(error)));
  }
}

void VouchAtTracker(const Settings& settings, const std::string& ticket) {
  TrackerConnection connection(settings);
  connection.Send(wire::Encode(wire::Vouch{settings.task_id, ticket}));
  const auto deadline = TrackerConnection::Clock::now() + settings.connect_timeout * kFirstAnswerPatience;
  const std::string answer =
      connection.ReadString("the confirmation that it expects this worker", wire::kVouched.size(), deadline);
  if (answer == wire::kVouched) return;
  throw EngineError(
      fmt::format("the tracker at {}:{} does not expect this worker, although its process vouched for it",
                  settings.tracker_host, settings.tracker_port));
}

void PrintAtTracker(const Settings& settings, wire::classic::Hello worker, const std::string& text) {
  worker.command = wire::classic::Command::kPrint;
  std::string_view rest = text;
  try {
    while (!rest.empty()) {
      const std::string_view piece = rest.substr(0, wire::classic::kMaxPrintBytes);
      TrackerConnection(settings, worker).Send(Encode(wire::classic::PrintText{std::string(piece)}));
      rest.remove_prefix(piece.size());
    }
  } catch (const EngineError& error) {
    std::fprintf(stderr,
                 "rabit: cannot send the tracker at %s:%d the text to print (%s); it follows on stdout\n",
                 settings.tracker_host.c_str(), settings.tracker_port, error.what());
    std::fwrite(rest.data(), 1, rest.size(), stdout);
    std::fflush(stdout);
  }
}

}  // namespace warren
