#include "tracker/collective_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "wire/printable.h"

namespace warren::tracker {

namespace collective = wire::collective;

namespace {

constexpr const char* kLost = "was lost: it ended without a shutdown";

/// The first line of a worker's error text, which may include a stack trace; at most kMostBytes of it.
std::string FirstLine(const std::string& text) {
  constexpr std::size_t kMostBytes = 400;
  return wire::PrintableLines(text.substr(0, std::min(text.find('\n'), kMostBytes)));
}

}  // namespace

CollectiveJob::CollectiveJob(ConnectionTable& connections, const JobOptions& options, TimePoint now)
    : connections_(connections), options_(options), incomplete_since_(now) {}

// --- connections -----------------------------------------------------------------------------------------

void CollectiveJob::Received(ConnectionId connection, std::string_view bytes, TimePoint now) {
  peers_.at(connection).stream.Append(bytes);
  // Handling a message may end this connection.
  for (auto peer = peers_.find(connection); peer != peers_.end(); peer = peers_.find(connection)) {
    auto message = peer->second.stream.Next();
    if (!message) break;
    HandleMessage(connection, std::move(*message), now);
  }
}

void CollectiveJob::Connected(ConnectionId connection) {
  const auto error_port = error_ports_.find(connection);
  if (error_port != error_ports_.end()) error_port->second.reached = true;
}

void CollectiveJob::Closed(ConnectionId connection, std::string_view why, TimePoint now) {
  if (error_ports_.contains(connection)) return ErrorConnectionClosed(connection, why, now);
  const auto peer = peers_.find(connection);
  // The connection belongs to the error port of a worker that is leaving or has failed.
  if (peer == peers_.end()) return connections_.Close(connection);
  if (peer->second.leaves_run > 0) return Left(connection);
  // The peer may be a member that has failed before it could send its message, such as its shutdown. Then its
  // error port or its launcher reveals this.
  if (RankOf(connection) >= 0) {
    connections_.Log(Severity::kDebug, fmt::format("{}: {}", connections_.Name(connection), why));
    return Forget(connection);
  }
  const bool waited = unranked_.Remove(connection);
  Drop(connection, waited ? fmt::format("{} while it waited for the other workers", why)
                          : fmt::format("{}, expected {}", why, peers_.at(connection).stream.Expected()));
}

void CollectiveJob::Drop(ConnectionId connection, const std::string& reason) {
  connections_.LogDrop(connection, reason);
  const auto peer = peers_.find(connection);
  if (peer != peers_.end() && peer->second.leaves_run > 0) return Left(connection);
  Forget(connection);
}

void CollectiveJob::Abandon() {
  for (const auto& [error_connection, port] : error_ports_) {
    // Workers that are still waiting, and workers of an elastic job, get no error signal.
    const bool is_member = port.rank >= 0 && !options_.elastic;
    connections_.Send(error_connection,
                      collective::Encode(is_member ? collective::Signal::kError : collective::Signal::kEnd));
    connections_.Close(error_connection);
  }
  error_ports_.clear();
  // The error connections of leaving workers.
  for (auto& [connection, peer] : peers_) CloseErrorConnection(std::exchange(peer.error_connection, 0));
}

void CollectiveJob::Forget(ConnectionId connection) {
  unranked_.Remove(connection);
  const auto peer = peers_.find(connection);
  if (peer != peers_.end()) {
    CloseErrorConnection(peer->second.error_connection);
    peers_.erase(peer);
  }
  connections_.Close(connection);
}

// --- messages --------------------------------------------------------------------------------------------

void CollectiveJob::HandleMessage(ConnectionId connection, collective::WorkerMessage message, TimePoint now) {
  if (const auto* hello = std::get_if<collective::Hello>(&message)) {
    HandleHello(connection, *hello);
  } else if (const auto* start = std::get_if<collective::Start>(&message)) {
    HandleStart(connection, *start, now);
  } else if (std::holds_alternative<collective::Shutdown>(message)) {
    HandleShutdown(connection, now);
  } else if (const auto* failure = std::get_if<collective::Failure>(&message)) {
    HandleFailure(connection, *failure, now);
  } else if (const auto* print = std::get_if<collective::Print>(&message)) {
    HandlePrint(connection, *print);
  }
}

void CollectiveJob::HandleHello(ConnectionId connection, const collective::Hello& hello) {
  peers_.at(connection).hello = hello;
  const std::string task_id = OwnTask(options_, hello.task_id);
  peers_.at(connection).hello.task_id = task_id;
  std::string name;
  if (!task_id.empty()) name = fmt::format("task {}", wire::Printable(task_id));
  // A worker's first hello always carries rank 0, whatever its rank will be.
  if (hello.rank >= 0 && hello.world_size > 0)
    name += fmt::format("{}rank {}", name.empty() ? "" : ", ", hello.rank);
  connections_.SetName(connection, std::move(name));
}

void CollectiveJob::HandleStart(ConnectionId connection, const collective::Start& start, TimePoint now) {
  Peer& peer = peers_.at(connection);
  const std::string task_id = peer.hello.task_id;
  if (peer.hello.world_size != -1 && peer.hello.world_size != options_.num_workers) {
    throw wire::ProtocolError(fmt::format("it expects {} workers, but this job has {}", peer.hello.world_size,
                                          options_.num_workers));
  }
  if (stage_ == Stage::kRunning) {
    const auto rank = RankOfTask(task_id);
    if (!rank) {
      throw wire::ProtocolError(
          fmt::format("it wants to start, but all {} workers of the job have already joined: {}",
                      options_.num_workers, DescribeMissing()));
    }
    // While the connection to the member's error port is open, the member is still running on the host it
    // joined from.
    const Member& member = members_[*rank];
    if (member.error_connection != 0 && error_ports_.at(member.error_connection).reached &&
        !connections_.MaySpeakFor(connection, member.host)) {
      throw wire::ProtocolError(fmt::format(
          "{} is still running, and a start for it is accepted only from there", Describe(*rank)));
    }
    if (suspected_) {
      Confirm(now);
    } else {
      Break(*rank,
            members_[*rank].shut_down
                ? "wants to join again after leaving: a job has only one communicator"
                : "was restarted while the others were running, or a second process has joined under its "
                  "task id: a process that a worker starts must not join the job itself",
            now);
    }
  }
  connections_.SetIdentified(connection);
  peer.port = start.port;
  peer.error_port = start.error_port;
  connections_.Send(connection, collective::Encode(collective::World{options_.num_workers}));
  if (const auto earlier = unranked_.Add(connection, task_id, connections_.host(connection))) {
    Drop(*earlier, fmt::format("task {} has connected again", wire::Printable(task_id)));
  }
  CallErrorPort(connection);
  connections_.Log(Severity::kDebug, fmt::format("{} joined", connections_.Name(connection)));
  connections_.Add(Joined{static_cast<int>(unranked_.size()), options_.num_workers});
  if (static_cast<int>(unranked_.size()) == options_.num_workers) Bootstrap();
}

/// Connects to the error port of a waiting worker, if the worker has one that is not connected yet.
void CollectiveJob::CallErrorPort(ConnectionId connection) {
  Peer& peer = peers_.at(connection);
  if (peer.error_port <= 0 || peer.error_connection != 0) return;
  const std::string& host = connections_.host(connection);
  peer.error_connection = connections_.Connect(host, static_cast<std::uint16_t>(peer.error_port));
  connections_.SetName(peer.error_connection,
                       fmt::format("the error port of task {}", wire::Printable(peer.hello.task_id)));
  error_ports_[peer.error_connection] = {.waiting = connection};
}

/// Assigns ranks, after all workers have joined, and tells each worker which worker to connect to.
void CollectiveJob::Bootstrap() {
  const std::vector<UnrankedWorkers::Worker> order = unranked_.TakeSorted(options_.sort_by);
  members_.clear();
  suspected_.reset();
  num_shut_down_ = num_leaving_ = num_lost_ = num_gone_ = 0;
  ++run_;
  stage_ = Stage::kRunning;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const std::size_t next = (rank + 1) % order.size();
    connections_.Send(order[rank].connection,
                      collective::Encode(collective::Next{static_cast<std::int32_t>(next), order[next].host,
                                                          peers_.at(order[next].connection).port}));
  }
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const auto& [connection, task_id, host] = order[rank];
    const int number = static_cast<int>(rank);
    Member& member = members_.emplace_back();
    member.task_id = task_id;
    member.host = host;
    CallErrorPort(connection);  // once more, if it could not be reached before
    member.error_connection = std::exchange(peers_.at(connection).error_connection, 0);
    if (member.error_connection != 0) {
      error_ports_.at(member.error_connection).rank = number;
      connections_.SetName(member.error_connection, fmt::format("the error port of rank {}", rank));
    }
    connections_.Add(Assigned{task_id, number, host});
    connections_.Write({.kind = Note::Kind::kMember, .rank = number, .task_id = task_id, .host = host});
    Forget(connection);
  }
  connections_.Log(Severity::kDebug, fmt::format("all {} workers know each other", options_.num_workers));
  connections_.Add(Linked{});
}

/// The rank that the peer claims, if that rank belongs to the peer's task and the peer may speak for it;
/// otherwise -1.
int CollectiveJob::RankOf(ConnectionId connection) const {
  const collective::Hello& hello = peers_.at(connection).hello;
  if (stage_ != Stage::kRunning || hello.rank < 0 || hello.rank >= static_cast<int>(members_.size()))
    return -1;
  const Member& member = members_[hello.rank];
  const bool same = member.task_id == hello.task_id && connections_.MaySpeakFor(connection, member.host);
  return same ? hello.rank : -1;
}

void CollectiveJob::HandleShutdown(ConnectionId connection, TimePoint now) {
  Peer& peer = peers_.at(connection);
  const collective::Hello& hello = peer.hello;
  const int rank = RankOf(connection);
  if (rank < 0 && stage_ == Stage::kBroken) return Forget(connection);  // the tracker told the worker to exit
  if (rank < 0) {
    throw wire::ProtocolError(
        fmt::format("it shuts down as rank {}, which was not assigned to it", hello.rank));
  }
  if (members_[rank].shut_down) throw wire::ProtocolError(fmt::format("rank {} has already shut down", rank));
  if (members_[rank].reported_error) return Forget(connection);  // the worker ends because of its error
  Member& member = members_[rank];
  member.shut_down = true;
  Gone(member);
  if (std::exchange(member.lost_since, {})) --num_lost_;
  ++num_shut_down_;
  ++num_leaving_;
  // The worker now ends its error port through a connection that is queued after the tracker's, and treats it
  // as an error if the port has closed by then. Afterwards it closes this connection.
  error_ports_.erase(member.error_connection);
  peer.error_connection = std::exchange(member.error_connection, 0);
  peer.leaves_run = run_;
  connections_.SetIdentified(connection);
  connections_.SetDeadline(connection, now + kLeaveTimeout);
  connections_.Write({.kind = Note::Kind::kShutDown, .rank = rank});
  connections_.Log(Severity::kDebug,
                   fmt::format("{} shut down as rank {}", connections_.Name(connection), rank));
}

void CollectiveJob::HandlePrint(ConnectionId connection, const collective::Print& print) {
  // Workers may still print after the run has broken.
  const bool of_broken_job =
      stage_ == Stage::kBroken && std::any_of(members_.begin(), members_.end(), [&](const Member& member) {
        return connections_.MaySpeakFor(connection, member.host);
      });
  if (!of_broken_job && RankOf(connection) < 0) {
    throw wire::ProtocolError(
        fmt::format("it prints as rank {}, which was not assigned to it", peers_.at(connection).hello.rank));
  }
  connections_.Add(Print{wire::PrintableLines(print.text), RankOf(connection)});
  Forget(connection);
}

void CollectiveJob::Left(ConnectionId connection) {
  const bool of_this_run = peers_.at(connection).leaves_run == run_ && stage_ == Stage::kRunning;
  Forget(connection);
  if (!of_this_run || finished_) return;
  --num_leaving_;
  if (num_leaving_ > 0 || num_shut_down_ < options_.num_workers) return;
  finished_ = true;
  connections_.Add(Finished{});
}

void CollectiveJob::HandleFailure(ConnectionId connection, const collective::Failure& failure,
                                  TimePoint now) {
  const int rank = RankOf(connection);
  const std::string text = FirstLine(failure.text);
  const std::string what = fmt::format("reported an error{}{}", text.empty() ? "" : ": ", text);
  if (rank < 0)
    connections_.Log(Severity::kWarning, fmt::format("{} {}", connections_.Name(connection), what));
  Forget(connection);
  if (rank < 0) return;
  members_[rank].reported_error = true;
  if (LostBefore(rank)) return Break(rank, what, now);
  if (!suspected_) suspected_ = SuspectedFailure{rank, what, now};
}

// --- failures --------------------------------------------------------------------------------------------

void CollectiveJob::ErrorConnectionClosed(ConnectionId error_connection, std::string_view why,
                                          TimePoint now) {
  const ErrorPort port = error_ports_.at(error_connection);
  connections_.Log(Severity::kDebug, fmt::format("{}: {}", connections_.Name(error_connection), why));
  error_ports_.erase(error_connection);
  connections_.Close(error_connection);
  if (port.rank < 0) {  // the worker still waits; if it has exited, port.waiting closes, too
    peers_.at(port.waiting).error_connection = 0;
    return;
  }
  Member& member = members_[port.rank];
  member.error_connection = 0;
  // The end of a connection that was never established does not mean that the worker was lost.
  if (stage_ != Stage::kRunning || !port.reached || member.shut_down || member.reported_error) return;
  member.lost_since = now;
  ++num_lost_;
  Gone(member);
  if (suspected_) Break(port.rank, kLost, now);
}

void CollectiveJob::Gone(Member& member) {
  if (!member.gone_after) member.gone_after = num_gone_++;
}

void CollectiveJob::TaskFailed(const std::string& task_id, const std::string& how, TimePoint now) {
  if (stage_ != Stage::kRunning || finished_) return;
  const auto rank = RankOfTask(task_id);
  if (!rank || members_[*rank].shut_down) return;
  // The worker has reported the failure itself. Whether another worker failed first is decided after
  // kSilentFailureGrace.
  if (suspected_ && members_[*rank].reported_error) return;
  Break(*rank, how, now);
}

/// The first rank lost before this one failed; nullopt if this rank failed first.
std::optional<int> CollectiveJob::LostBefore(int rank) const {
  std::optional<int> first = members_[rank].lost_since ? std::optional(rank) : std::nullopt;
  for (int other = 0; num_lost_ > 0 && other < static_cast<int>(members_.size()); ++other) {
    const auto lost = members_[other].lost_since;
    if (lost && (!first || *lost < *members_[*first].lost_since)) first = other;
  }
  return first == rank ? std::nullopt : first;
}

void CollectiveJob::Confirm(TimePoint now) {
  const SuspectedFailure first = *std::exchange(suspected_, {});
  Break(first.rank, first.what, now);
}

/// Breaks the current run, which cannot continue without this rank or without a rank that was lost earlier,
/// and tells all other workers to stop. In an elastic job, only reports the loss.
void CollectiveJob::Break(int rank, std::string what, TimePoint now) {
  if (const auto first = LostBefore(rank)) {
    connections_.Log(Severity::kDebug, fmt::format("{} {}", Describe(rank), what));
    rank = *first;
    what = kLost;
  }
  suspected_.reset();
  const std::string story = fmt::format("{} {}", Describe(rank), what);
  if (options_.elastic) {
    // The members leave the run as usual and join another generation. XGBoost's error signal would end their
    // processes.
    if (!std::exchange(was_broken_, true)) connections_.Add(Broken{members_[rank].task_id, rank, story});
    num_lost_ = 0;
    for (Member& member : members_) member.lost_since.reset();
    return;
  }
  stage_ = Stage::kBroken;
  incomplete_since_ = now;
  num_lost_ = 0;
  int told = 0;
  for (int other = 0; other < static_cast<int>(members_.size()); ++other) {
    Member& member = members_[other];
    member.lost_since.reset();
    const ConnectionId error_connection = std::exchange(member.error_connection, 0);
    if (error_connection == 0) continue;
    error_ports_.erase(error_connection);
    // The failed rank's connection stays open: its worker is exiting, and would report another error if the
    // connection were closed.
    if (other == rank) continue;
    connections_.Send(error_connection, collective::Encode(collective::Signal::kError));
    connections_.Close(error_connection);
    ++told;
  }
  connections_.Write({.kind = Note::Kind::kBroken, .rank = rank});
  connections_.Log(Severity::kWarning, fmt::format("{}; told {} others to stop", story, told));
  connections_.Add(Broken{members_[rank].task_id, rank, story});
}

/// Tells a worker that nothing more will arrive at its error port, and closes the connection.
void CollectiveJob::CloseErrorConnection(ConnectionId error_connection) {
  error_ports_.erase(error_connection);
  if (error_connection == 0 || !connections_.Has(error_connection)) return;
  connections_.Send(error_connection, collective::Encode(collective::Signal::kEnd));
  connections_.Close(error_connection);
}

std::string CollectiveJob::Describe(int rank) const {
  const Member& member = members_[rank];
  return fmt::format("rank {} ({}host {})", rank,
                     member.task_id.empty() ? "" : fmt::format("task {}, ", wire::Printable(member.task_id)),
                     member.host);
}

std::vector<Send> CollectiveJob::FinalMessages() const {
  std::vector<Send> messages;
  for (const auto& [error_connection, port] : error_ports_)
    messages.push_back({error_connection, collective::Encode(collective::Signal::kEnd)});
  return messages;
}

// --- time ------------------------------------------------------------------------------------------------

void CollectiveJob::Tick(TimePoint now) {
  if (finished_) return;
  if (suspected_ && now - suspected_->since >= kSilentFailureGrace) Confirm(now);
  for (int rank = 0; num_lost_ > 0 && rank < static_cast<int>(members_.size()); ++rank) {
    const auto lost = members_[rank].lost_since;
    if (lost && now - *lost >= kShutdownGrace) Break(rank, kLost, now);
  }
  if (HasDeadline() && now - incomplete_since_ >= options_.timeout) {
    finished_ = true;
    connections_.Add(Finished{DescribeTimeout(options_.timeout, DescribeMissing())});
  }
}

std::optional<TimePoint> CollectiveJob::NextDeadline() const {
  if (finished_) return std::nullopt;
  std::optional<TimePoint> next;
  const auto consider = [&](TimePoint time) { next = next ? std::min(*next, time) : time; };
  if (suspected_) consider(suspected_->since + kSilentFailureGrace);
  if (num_lost_ > 0) {
    for (const Member& member : members_) {
      if (member.lost_since) consider(*member.lost_since + kShutdownGrace);
    }
  }
  if (HasDeadline()) consider(incomplete_since_ + options_.timeout);
  return next;
}

// --- take-over by another tracker ------------------------------------------------------------------------

void CollectiveJob::TakeOver(const std::vector<Note>& notes, TimePoint now) {
  for (const Note& note : notes) {
    const auto size = static_cast<int>(members_.size());
    const auto check = [&](bool possible) { RequirePossible(note, possible); };
    switch (note.kind) {
      case Note::Kind::kMember:
        if (note.rank == 0) {
          members_.clear();
          ++run_;
        }
        check(note.rank == static_cast<int>(members_.size()) && note.rank < options_.num_workers);
        members_.emplace_back();
        members_.back().task_id = note.task_id;
        members_.back().host = note.host;
        stage_ = Stage::kRunning;
        num_shut_down_ = 0;
        break;
      case Note::Kind::kShutDown:
        check(note.rank < size && !members_[note.rank].shut_down);
        members_[note.rank].shut_down = true;
        ++num_shut_down_;
        break;
      case Note::Kind::kBroken:
        check(note.rank < size);
        stage_ = Stage::kBroken;
        break;
      default:
        check(false);
    }
  }
  incomplete_since_ = now;
  // If the previous tracker died before it had noted all members, the run is treated as broken: all workers
  // must join again.
  if (stage_ == Stage::kRunning && static_cast<int>(members_.size()) < options_.num_workers)
    stage_ = Stage::kBroken;
  if (stage_ != Stage::kRunning) return;
  connections_.Add(Linked{});
  if (num_shut_down_ < options_.num_workers) return;
  finished_ = true;
  connections_.Add(Finished{});
}

// --- queries ---------------------------------------------------------------------------------------------

std::optional<int> CollectiveJob::RankOfTask(const std::string& task_id) const {
  if (stage_ != Stage::kRunning || task_id.empty()) return std::nullopt;
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    if (members_[rank].task_id == task_id) return static_cast<int>(rank);
  }
  return std::nullopt;
}

bool CollectiveJob::TaskHasShutDown(const std::string& task_id) const {
  const auto rank = RankOfTask(task_id);
  return rank && members_[*rank].shut_down;
}

std::optional<int> CollectiveJob::GoneAfter(const std::string& task_id) const {
  for (const Member& member : members_) {
    if (member.task_id == task_id) return member.gone_after;
  }
  return std::nullopt;
}

std::string CollectiveJob::DescribeMissing() const {
  std::vector<std::string> came;
  std::vector<std::string> task_ids;
  if (stage_ == Stage::kRunning) {
    for (std::size_t rank = 0; rank < members_.size(); ++rank) {
      came.push_back(Describe(static_cast<int>(rank)));
      task_ids.push_back(members_[rank].task_id);
    }
  }
  for (const UnrankedWorkers::Worker& worker : unranked_.List()) {
    came.push_back(fmt::format("task {} ({})", wire::Printable(worker.task_id), worker.host));
    task_ids.push_back(worker.task_id);
  }
  return DescribeAttendance(came, task_ids, options_.num_workers);
}

}  // namespace warren::tracker
