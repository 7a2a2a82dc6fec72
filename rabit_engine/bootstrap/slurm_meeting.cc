#include "rabit_engine/bootstrap/slurm_meeting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <optional>
#include <thread>
#include <utility>

#include "posix/host_name.h"
#include "posix/shortage.h"
#include "posix/sockets.h"
#include "rabit_engine/base/error.h"
#include "rabit_engine/base/shortage.h"
#include "rabit_engine/bootstrap/slurm_stream.h"
#include "wire/bytes.h"

namespace warren {
namespace {

using Clock = DeadlineStream::Clock;
using namespace std::chrono_literals;

/// The time limit of a greeting: at rank 0, until it has fully arrived on a new connection; at the other
/// ranks, for connecting, greeting and receiving rank 0's answer.
constexpr auto kGreetingTime = 5s;
/// The additional time after a deadline in which rank 0 may still send its answer, or the reason for a
/// failure, and the other ranks still wait for it.
constexpr auto kGrace = 5s;
/// The maximum duration of one poll at rank 0, after which expired connections are dropped.
constexpr std::chrono::milliseconds kLongestPoll = 1s;
constexpr std::size_t kMaxTextBytes = 4096;

std::string Who(const SlurmStep& step) {
  return fmt::format("rank {} of {} on {} (Slurm step {})", step.rank, step.world_size, posix::HostName(),
                     step.id);
}

// --- messages ----------------------------------------------------------------------------------------------

struct Greeting {
  std::string step;
  std::string token;
  std::int32_t rank = -1;
  std::int32_t world_size = -1;
};

std::string Encode(const Greeting& greeting) {
  return wire::Writer()
      .Int(kMeetingMagic)
      .String(greeting.step)
      .String(greeting.token)
      .Int(greeting.rank)
      .Int(greeting.world_size)
      .Take();
}

/// A connection to rank 0 whose greeting has not fully arrived.
class PendingConnection {
 public:
  explicit PendingConnection(DeadlineStream stream)
      : stream_(std::move(stream)), patience_(Clock::now() + kGreetingTime) {}

  /// Returns the greeting once it has fully arrived, else nullopt. Throws ProtocolError if the bytes are not
  /// a greeting of this protocol, EngineError if the connection is lost.
  std::optional<Greeting> Listen() {
    reader_.Append(stream_.ReceiveSome(kMaxTextBytes));
    if (!has_magic_) {
      const auto magic = reader_.Int();
      if (!magic) return std::nullopt;
      if (*magic != kMeetingMagic) throw wire::ProtocolError("not a greeting from a rank");
      has_magic_ = true;
    }
    if (!step_ && !(step_ = reader_.String("step", kMaxTextBytes))) return std::nullopt;
    if (!token_ && !(token_ = reader_.String("token", kMaxTextBytes))) return std::nullopt;
    if (reader_.available() < 2 * sizeof(std::int32_t)) return std::nullopt;
    return Greeting{*step_, *token_, *reader_.Int(), *reader_.Int()};
  }
  int fd() const { return stream_.fd(); }
  bool out_of_patience() const { return Clock::now() > patience_; }
  DeadlineStream TakeStream() { return std::move(stream_); }

 private:
  DeadlineStream stream_;
  Clock::time_point patience_;
  wire::Reader reader_;
  bool has_magic_ = false;
  std::optional<std::string> step_;
  std::optional<std::string> token_;
};

std::int32_t ReceiveInt(DeadlineStream& stream, Clock::time_point deadline) {
  wire::Reader reader;
  reader.Append(stream.Receive(sizeof(std::int32_t), deadline));
  return *reader.Int();
}

std::string ReceiveString(DeadlineStream& stream, std::size_t limit, Clock::time_point deadline) {
  const std::int32_t bytes = ReceiveInt(stream, deadline);
  if (bytes < 0 || static_cast<std::size_t>(bytes) > limit) {
    throw EngineError(fmt::format("it announced a text of {} bytes, expected at most {}", bytes, limit));
  }
  return stream.Receive(static_cast<std::size_t>(bytes), deadline);
}

std::string Answer(bool well, std::string_view text) {
  return wire::Writer().Int(well ? 0 : 1).String(text).Take();
}

/// Sends `story`, the reason why the job cannot continue, over all open connections, then closes them.
void TellAll(std::vector<DeadlineStream>& connections, const std::string& story) {
  for (DeadlineStream& connection : connections) {
    try {
      if (connection.is_open()) connection.Send(Answer(false, story), Clock::now() + 1s);
    } catch (const EngineError&) {
      // The other rank notices that the connection is closed.
    }
    connection.Close();
  }
}

// --- rank 0 ------------------------------------------------------------------------------------------------

tcp::Socket ListenOnOneOf(const SlurmStep& step) {
  std::string tried;
  for (const int port : step.meeting_ports) {
    int error = 0;
    tcp::Socket listener = tcp::ListenOn(port, error);
    if (listener) return listener;
    if (posix::IsLocalShortage(error) && !posix::ConcernsAddress(error))
      ThrowShortage("rank 0 cannot listen for the other ranks", "socket, bind or listen", error);
    tried += fmt::format("{}{} ({})", tried.empty() ? "" : ", ", port, tcp::ErrorText(error));
  }
  throw EngineError(
      fmt::format("{}: none of the ports on which the ranks meet can be used: {}; set WARREN_BOOTSTRAP_PORT",
                  Who(step), tried));
}

/// Accepts the connections of the other ranks at rank 0 until all ranks have arrived.
class Door {
 public:
  Door(const SlurmStep& step, const std::optional<tls::Context>& tls, Clock::time_point deadline)
      : step_(step),
        tls_(tls),
        deadline_(deadline),
        listener_(ListenOnOneOf(step)),
        seats_(step.world_size) {}

  /// Returns the connections, indexed by rank; entry 0 is empty. Throws TimedOut if ranks are missing at the
  /// deadline.
  std::vector<DeadlineStream> WaitForAll() {
    while (num_seated_ + 1 < step_.world_size) {
      if (Clock::now() >= deadline_) GiveUp();
      WaitForNews();
      AcceptAll();
      for (auto connection = pending_.begin(); connection != pending_.end();) {
        connection = Attend(*connection) ? pending_.erase(connection) : std::next(connection);
      }
    }
    for (int rank = 1; rank < step_.world_size; ++rank) {
      try {
        seats_[rank].Send(Answer(true, ""), deadline_ + kGrace);
      } catch (const EngineError& error) {
        const std::string story =
            fmt::format("{}: rank {} was lost while the ranks connected: {}", Who(step_), rank, error.what());
        TellAll(seats_, story);
        throw LostPeer(rank, story);
      }
    }
    return std::move(seats_);
  }

 private:
  void WaitForNews() {
    std::vector<pollfd> sockets{{listener_.fd(), POLLIN, 0}};
    for (const PendingConnection& connection : pending_) sockets.push_back({connection.fd(), POLLIN, 0});
    tcp::PollUntil(sockets, std::min(deadline_, Clock::now() + kLongestPoll));
  }

  void AcceptAll() {
    for (;;) {
      tcp::Socket socket(posix::Accept(listener_.fd(), posix::Blocking::kYes));
      if (!socket && posix::ConcernsOneConnection(errno)) continue;
      if (!socket) {
        const int error = errno;
        if (posix::IsLocalShortage(error) && posix::HasConnection(listener_.fd())) MakeRoom(error);
        return;
      }
      tcp::Stream stream(std::move(socket));
      if (tls_) stream.Encrypt(*tls_, tls::Role::kServer);
      pending_.emplace_back(DeadlineStream(std::move(stream)));
    }
  }

  /// Drops the oldest pending connection so that another can be accepted. If none is pending, sends the
  /// reason to all ranks that have arrived and throws LocalShortage.
  void MakeRoom(int shortage) {
    if (!pending_.empty()) return pending_.pop_front();
    try {
      ThrowShortage(fmt::format("{} cannot accept a connection from another rank", Who(step_)), "accept",
                    shortage);
    } catch (const LocalShortage& error) {
      TellAll(seats_, error.what());
      throw;
    }
  }

  /// Returns true if the connection is no longer pending: it was accepted, rejected or lost, or its greeting
  /// took too long.
  bool Attend(PendingConnection& connection) {
    try {
      const auto greeting = connection.Listen();
      if (!greeting) return connection.out_of_patience();
      DeadlineStream stream = connection.TakeStream();
      if (const std::string objection = Objection(*greeting); !objection.empty()) {
        const bool is_unauthenticated = step_.has_job_token && greeting->token != step_.token;
        if (!is_unauthenticated) stream.Send(Answer(false, objection), Clock::now() + kGreetingTime);
        return true;
      }
      stream.Send(Answer(true, ""), Clock::now() + kGreetingTime);
      // If the rank had connected before, it has given up that connection.
      DeadlineStream& seat = seats_[greeting->rank];
      if (!seat.is_open()) ++num_seated_;
      seat = std::move(stream);
    } catch (const wire::ProtocolError&) {  // another program has connected
    } catch (const EngineError&) {          // the connection has broken
    }
    return true;
  }

  std::string Objection(const Greeting& greeting) const {
    if (greeting.step != step_.id)
      return fmt::format("this is Slurm step {}, not {}", step_.id, greeting.step);
    if (greeting.token != step_.token)
      return fmt::format("this is another job that is also called {}", step_.id);
    if (greeting.world_size != step_.world_size || greeting.rank < 1 || greeting.rank >= step_.world_size) {
      return fmt::format("there are {} ranks here, and rank {} of {} is not one of them", step_.world_size,
                         greeting.rank, greeting.world_size);
    }
    return {};
  }

  [[noreturn]] void GiveUp() {
    constexpr std::size_t kRanksToName = 16;
    std::vector<int> missing;
    for (int rank = 1; rank < step_.world_size; ++rank) {
      if (!seats_[rank].is_open()) missing.push_back(rank);
    }
    const std::size_t num_missing = missing.size();
    missing.resize(std::min(num_missing, kRanksToName));
    const std::string story = fmt::format(
        "{}: {} of the other ranks did not connect in time (ranks {}{}); check whether they are running, or set a higher WARREN_CONNECT_TIMEOUT",
        Who(step_), num_missing, fmt::join(missing, ", "), num_missing > kRanksToName ? ", ..." : "");
    TellAll(seats_, story);
    throw TimedOut(story);
  }

  const SlurmStep& step_;
  const std::optional<tls::Context>& tls_;
  Clock::time_point deadline_;
  tcp::Socket listener_;
  std::list<PendingConnection> pending_;
  std::vector<DeadlineStream> seats_;
  int num_seated_ = 0;
};

class MeetingHost : public Bootstrap {
 public:
  MeetingHost(const SlurmStep& step, const std::optional<tls::Context>& tls, std::chrono::seconds timeout)
      : step_(step), timeout_(timeout), guests_(Door(step, tls, Clock::now() + timeout).WaitForAll()) {}

  int rank() const override { return 0; }
  int world_size() const override { return step_.world_size; }

  std::vector<std::string> Allgather(const std::string& record) override {
    const auto deadline = Clock::now() + timeout_;
    std::vector<std::string> records{record};
    for (int rank = 1; rank < step_.world_size; ++rank) records.push_back(RecordOf(rank, deadline));
    wire::Writer together;
    for (const std::string& each : records) together.String(each);
    const std::string answer = Answer(true, together.Take());
    for (int rank = 1; rank < step_.world_size; ++rank) {
      Attempt(rank, [&](DeadlineStream& guest) { guest.Send(answer, deadline + kGrace); });
    }
    return records;
  }

  void Shutdown() override { guests_.clear(); }

 private:
  std::string RecordOf(int rank, Clock::time_point deadline) {
    std::string record;
    Attempt(rank, [&](DeadlineStream& guest) { record = ReceiveString(guest, kMaxRecordBytes, deadline); });
    return record;
  }

  /// Runs `function` on the connection of a rank. If the function fails, sends the reason over all
  /// connections and throws TimedOut, LocalShortage or LostPeer.
  template <typename Function>
  void Attempt(int rank, const Function& function) {
    const std::string begin = fmt::format("{}: exchanging addresses: rank {}", Who(step_), rank);
    try {
      function(guests_[rank]);
    } catch (const TimedOut&) {
      const std::string story = fmt::format("{} was silent for {} s", begin, timeout_.count());
      TellAll(guests_, story);
      throw TimedOut(story);
    } catch (const LocalShortage& error) {
      TellAll(guests_, error.what());
      throw;
    } catch (const EngineError& error) {
      const std::string story = fmt::format("{} is lost: {}", begin, error.what());
      TellAll(guests_, story);
      throw LostPeer(rank, story);
    }
  }

  SlurmStep step_;
  std::chrono::seconds timeout_;
  std::vector<DeadlineStream> guests_;  ///< connections, indexed by rank; entry 0 is empty
};

// --- the other ranks ---------------------------------------------------------------------------------------

/// Thrown if rank 0 has reported that the job cannot continue.
class Refused : public EngineError {
 public:
  using EngineError::EngineError;
};

class MeetingGuest : public Bootstrap {
 public:
  MeetingGuest(const SlurmStep& step, const std::optional<tls::Context>& tls, std::chrono::seconds timeout)
      : step_(step), timeout_(timeout) {
    const auto deadline = Clock::now() + timeout_;
    Enter(tls, deadline);
    Await("waiting for all ranks", 0, deadline + kGrace);
  }

  int rank() const override { return step_.rank; }
  int world_size() const override { return step_.world_size; }

  std::vector<std::string> Allgather(const std::string& record) override {
    const auto deadline = Clock::now() + timeout_ + kGrace;
    constexpr std::string_view kDoing = "exchanging addresses";
    try {
      host_.Send(wire::Writer().String(record).Take(), deadline);
    } catch (const EngineError&) {
      // Rank 0 may have sent the reason for the failure before it closed the connection; Await reads it.
    }
    wire::Reader all;
    all.Append(Await(kDoing, step_.world_size * (kMaxRecordBytes + sizeof(std::int32_t)), deadline));
    std::vector<std::string> records;
    for (int rank = 0; rank < step_.world_size; ++rank) {
      auto each = all.String("record", kMaxRecordBytes);
      if (!each) throw EngineError(fmt::format("{}: {}: rank 0 sent too few records", Who(step_), kDoing));
      records.push_back(std::move(*each));
    }
    return records;
  }

  void Shutdown() override { host_.Close(); }

 private:
  /// Tries one port after the other until rank 0 of this step accepts this rank. Throws TimedOut if it has
  /// not done so by the deadline, or LocalShortage if this process lacks the resources to connect.
  void Enter(const std::optional<tls::Context>& tls, Clock::time_point deadline) {
    constexpr auto kPause = 20ms;
    std::string seen;
    for (;;) {
      for (const int port : step_.meeting_ports) {
        try {
          return Greet(port, tls, std::min(deadline, Clock::now() + kGreetingTime));
        } catch (const LocalShortage&) {
          throw;
        } catch (const EngineError& error) {
          seen = fmt::format("{}:{}: {}", step_.meeting_host, port, error.what());
        }
        if (Clock::now() >= deadline) {
          throw TimedOut(fmt::format(
              "{}: rank 0 was not found on {} at ports {} within {} s (last: {}); "
              "if rank 0 is on another host or a firewall is in between, set WARREN_BOOTSTRAP_HOST and WARREN_BOOTSTRAP_PORT",
              Who(step_), step_.meeting_host, fmt::join(step_.meeting_ports, ", "), timeout_.count(), seen));
        }
      }
      std::this_thread::sleep_for(kPause);
    }
  }

  void Greet(int port, const std::optional<tls::Context>& tls, Clock::time_point deadline) {
    DeadlineStream stream = DeadlineStream::Connect(step_.meeting_host, port, deadline, tls);
    stream.Send(Encode(Greeting{step_.id, step_.token, step_.rank, step_.world_size}), deadline);
    const std::int32_t refused = ReceiveInt(stream, deadline);
    const std::string text = ReceiveString(stream, kMaxTextBytes, deadline);
    if (refused != 0) throw EngineError(text);
    host_ = std::move(stream);
  }

  /// Returns rank 0's answer. Throws Refused if rank 0 gave up, TimedOut if it has not answered by the
  /// deadline, LostPeer if the connection fails or the answer is malformed, and LocalShortage if this process
  /// lacks a resource.
  std::string Await(std::string_view doing, std::size_t limit, Clock::time_point deadline) {
    try {
      const std::int32_t failed = ReceiveInt(host_, deadline);
      std::string text = ReceiveString(host_, std::max(limit, kMaxTextBytes), deadline);
      if (failed != 0) throw Refused(fmt::format("{}: {}: rank 0 gave up: {}", Who(step_), doing, text));
      return text;
    } catch (const Refused&) {
      throw;
    } catch (const LocalShortage&) {
      throw;
    } catch (const TimedOut&) {
      throw TimedOut(fmt::format("{}: {}: rank 0 was silent for {} s", Who(step_), doing, timeout_.count()));
    } catch (const EngineError& error) {
      throw LostPeer(0, fmt::format("{}: {}: rank 0 is lost: {}", Who(step_), doing, error.what()));
    }
  }

  SlurmStep step_;
  std::chrono::seconds timeout_;
  DeadlineStream host_;
};

}  // namespace

std::unique_ptr<Bootstrap> MeetAtRankZero(const SlurmStep& step, std::chrono::seconds timeout,
                                          const std::optional<tls::Context>& tls) {
  if (step.rank == 0) return std::make_unique<MeetingHost>(step, tls, timeout);
  return std::make_unique<MeetingGuest>(step, tls, timeout);
}

}  // namespace warren
