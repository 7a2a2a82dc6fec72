#include "tracker/classic_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "wire/printable.h"

namespace warren::tracker {

namespace classic = wire::classic;

namespace {

/// The maximum time for which the job waits for text to print after the last shutdown.
constexpr std::chrono::milliseconds kLastWords{200};

}  // namespace

ClassicJob::ClassicJob(ConnectionTable& connections, const JobOptions& options, TimePoint now)
    : connections_(connections),
      options_(options),
      configured_workers_(options.num_workers),
      incomplete_since_(now) {
  if (options_.num_workers < 1 || options_.num_workers > classic::kMaxWorldSize) {
    throw std::invalid_argument(
        fmt::format("a job of {} workers: expected 1 to {}", options_.num_workers, classic::kMaxWorldSize));
  }
}

// --- connections -----------------------------------------------------------------------------------------

void ClassicJob::Received(ConnectionId connection, std::string_view bytes, TimePoint now) {
  Peer* peer = Find(connection);
  if (peer == nullptr || finished_) return;
  peer->stream.Append(bytes);
  // Handling a message may end this connection.
  for (peer = Find(connection); peer != nullptr; peer = Find(connection)) {
    auto message = peer->stream.Next();
    if (!message) break;
    HandleMessage(connection, *peer, std::move(*message), now);
  }
  FinishWhenAllHaveShutDown(now);
}

void ClassicJob::Closed(ConnectionId connection, std::string_view why, TimePoint now) {
  const Peer* peer = Find(connection);
  if (peer == nullptr) return;
  if (peer->phase == Phase::kLeaves) {
    const int rank = peer->rank;
    const bool waited = members_[rank].waits == connection;
    if (waited) {
      connections_.Log(Severity::kDebug, fmt::format("{}: {} while it waited for the others to end",
                                                     connections_.Name(connection), why));
      ReturnToJob(rank);
    }
    return Forget(connection);
  }
  Drop(connection, peer->phase == Phase::kWaitsForRank
                       ? fmt::format("{} while it waited for the other workers", why)
                       : fmt::format("{}, expected {}", why, peer->stream.Expected()));
  FinishWhenAllHaveShutDown(now);
}

ClassicJob::Peer* ClassicJob::Find(ConnectionId connection) {
  const auto found = peers_.find(connection);
  return found == peers_.end() ? nullptr : &found->second;
}

void ClassicJob::Name(ConnectionId connection, const Peer& peer) {
  std::string name;
  if (peer.hello.task_id != classic::kNoTaskId)
    name = fmt::format("task {}", wire::Printable(peer.hello.task_id));
  if (peer.rank >= 0) name += fmt::format("{}rank {}", name.empty() ? "" : ", ", peer.rank);
  connections_.SetName(connection, std::move(name));
}

void ClassicJob::Drop(ConnectionId connection, const std::string& reason) {
  const Peer& peer = *Find(connection);
  connections_.LogDrop(connection, reason);
  if (peer.rank >= 0 && members_[peer.rank].exchange == connection) {
    members_[peer.rank].exchange = 0;
    broker_->Leave(peer.rank);
    if (!members_[peer.rank].has_linked && !members_[peer.rank].shut_down) Unassign(peer.rank);
  }
  if (peer.rank >= 0 && members_[peer.rank].waits == connection) ReturnToJob(peer.rank);
  Forget(connection);
}

// Frees the rank of a worker that has not completed an exchange. It can then be given to the next worker: to
// the same task again or, if the peer was not a worker, to the worker whose rank the peer took.
void ClassicJob::Unassign(int rank) {
  const auto task = task_ranks_.find(members_[rank].task_id);
  if (task != task_ranks_.end() && task->second == rank) task_ranks_.erase(task);
  members_[rank] = {};
  --num_assigned_;
  connections_.Write({.kind = Note::Kind::kUnassigned, .rank = rank});
}

void ClassicJob::Forget(ConnectionId connection) {
  unranked_.Remove(connection);
  asking_.erase(connection);
  peers_.erase(connection);
  connections_.Close(connection);
}

// --- messages --------------------------------------------------------------------------------------------

void ClassicJob::HandleMessage(ConnectionId connection, Peer& peer, classic::WorkerMessage message,
                               TimePoint now) {
  if (const auto* hello = std::get_if<classic::Hello>(&message)) {
    HandleHello(connection, peer, *hello, now);
  } else if (const auto* print = std::get_if<classic::PrintText>(&message)) {
    HandlePrint(connection, peer, *print);
  } else if (const auto* good = std::get_if<classic::GoodLinks>(&message)) {
    HandleGoodLinks(connection, peer, *good, now);
  } else if (const auto* errors = std::get_if<classic::LinkErrors>(&message)) {
    HandleLinkErrors(connection, peer, *errors, now);
  } else if (const auto* port = std::get_if<classic::ListenPort>(&message)) {
    HandleListenPort(connection, peer, *port, now);
  } else if (std::holds_alternative<classic::WaitForOthers>(message)) {
    HandleWait(connection, peer);
  }
}

void ClassicJob::HandleHello(ConnectionId connection, Peer& peer, const classic::Hello& hello,
                             TimePoint now) {
  peer.hello = hello;
  peer.hello.task_id = OwnTask(options_, hello.task_id);
  if (peer.hello.task_id.empty()) peer.hello.task_id = classic::kNoTaskId;
  peer.phase = Phase::kPrint;
  Name(connection, peer);
  switch (hello.command) {
    case classic::Command::kPrint:
      return;  // still pending until its text has arrived
    case classic::Command::kShutdown:
      return HandleShutdown(connection, peer, now);
    case classic::Command::kStart:
      connections_.SetIdentified(connection);
      return HandleStart(connection, peer, now);
    case classic::Command::kRecover:
      connections_.SetIdentified(connection);
      return HandleRecover(connection, peer, now);
  }
}

// The number of workers of the job. While no rank is assigned, this is the number that the waiting workers
// request or, if they request none, the number with which the tracker was started.
int ClassicJob::ExpectedWorldSize() const {
  if (num_assigned_ > 0) return options_.num_workers;
  if (!asking_.empty()) return peers_.at(*asking_.begin()).hello.world_size;
  return configured_workers_;
}

void ClassicJob::SettleWorldSize(const classic::Hello& hello) {
  int world_size = ExpectedWorldSize();
  if (hello.world_size > 0 && hello.world_size != world_size) {
    const bool first = unranked_.empty() && num_assigned_ == 0;
    if (!first || options_.world_size_is_fixed) {
      throw wire::ProtocolError(
          fmt::format("it expects {} workers, but this job has {}", hello.world_size, world_size));
    }
    connections_.Log(Severity::kInfo, fmt::format("the first worker asks for {} workers instead of {}",
                                                  hello.world_size, world_size));
    world_size = hello.world_size;
  }
  if (topology_ && topology_->size() == world_size) return;
  SetWorldSize(world_size);
  connections_.Write({.kind = Note::Kind::kWorld, .rank = world_size});
}

void ClassicJob::SetWorldSize(int world_size) {
  options_.num_workers = world_size;
  topology_.emplace(world_size);
  broker_.emplace(*topology_);
  members_.assign(world_size, {});
}

// Throws ProtocolError unless the peer may act for this rank. A rank belongs to the task that it was given
// to. The task may be restarted on another host, but other messages are accepted only from the host that the
// rank joined from, unless the peer is authenticated: otherwise a worker of another job whose tracker used
// the same port could be mistaken for a worker of this job.
void ClassicJob::RequireOwner(ConnectionId connection, int rank, const classic::Hello& hello) const {
  const std::string& owner = members_[rank].task_id;
  const bool anonymous = owner == classic::kNoTaskId || hello.task_id == classic::kNoTaskId;
  if (!anonymous && owner != hello.task_id) {
    throw wire::ProtocolError(fmt::format("rank {} belongs to task {}", rank, wire::Printable(owner)));
  }
  const bool is_new = hello.command == classic::Command::kStart;
  if (!is_new && !connections_.MaySpeakFor(connection, members_[rank].host)) {
    throw wire::ProtocolError(
        fmt::format("rank {} joined from {}, and a {} for it is accepted only from there", rank,
                    members_[rank].host, classic::CommandName(hello.command)));
  }
}

int ClassicJob::KnownRank(const classic::Hello& hello) const {
  if (hello.rank >= 0) return hello.rank;
  const auto known = task_ranks_.find(hello.task_id);
  return known == task_ranks_.end() ? -1 : known->second;
}

void ClassicJob::HandleStart(ConnectionId connection, Peer& peer, TimePoint now) {
  SettleWorldSize(peer.hello);
  const int rank = KnownRank(peer.hello);
  if (rank >= options_.num_workers) {
    throw wire::ProtocolError(
        fmt::format("its rank is {}, expected 0 to {}", rank, options_.num_workers - 1));
  }
  if (rank < 0) return AddPending(connection, peer, now);
  const Member& member = members_[rank];
  if (member.waits != 0 || member.shut_down_before) ReturnToJob(rank);  // its previous process has gone
  if (member.shut_down) {
    throw wire::ProtocolError(fmt::format("rank {} has already shut down and cannot start again", rank));
  }
  if (member.assigned) RequireOwner(connection, rank, peer.hello);
  Assign(connection, peer, rank, now);
  AssignPending(now);
}

void ClassicJob::HandleRecover(ConnectionId connection, Peer& peer, TimePoint now) {
  const int rank = peer.hello.rank;
  if (!IsAssigned(rank)) {
    throw wire::ProtocolError(
        fmt::format("it wants to recover as rank {}, which has not been assigned", rank));
  }
  RequireOwner(connection, rank, peer.hello);
  if (members_[rank].shut_down_before) ReturnToJob(rank);  // the previous tracker called it back
  if (members_[rank].shut_down) {
    throw wire::ProtocolError(fmt::format("rank {} has already shut down and cannot recover", rank));
  }
  SettleWorldSize(peer.hello);
  Assign(connection, peer, rank, now);
}

void ClassicJob::HandleShutdown(ConnectionId connection, Peer& peer, TimePoint now) {
  const int rank = peer.hello.rank;
  if (!IsAssigned(rank)) {
    throw wire::ProtocolError(fmt::format("it shuts down as rank {}, which has not been assigned", rank));
  }
  RequireOwner(connection, rank, peer.hello);
  Member& member = members_[rank];
  // Whether the worker announced its shutdown to the previous tracker, and now repeats it because that
  // tracker died before releasing it.
  const bool again = member.shut_down && std::exchange(member.shut_down_before, false);
  if (member.shut_down && !again) {
    throw wire::ProtocolError(fmt::format("rank {} has already shut down", rank));
  }
  if (!again) {
    member.shut_down = true;
    ++num_shut_down_;
    connections_.Write({.kind = Note::Kind::kShutDown, .rank = rank});
  }
  connections_.Log(Severity::kDebug,
                   fmt::format("{} shut down as rank {}", connections_.Name(connection), rank));
  peer.rank = rank;
  peer.phase = Phase::kLeaves;  // until the connection ends, even if the worker waits for the others on it
  connections_.SetIdentified(connection);
  if (num_shut_down_ == options_.num_workers) finish_by_ = now + kLastWords;
}

void ClassicJob::HandlePrint(ConnectionId connection, const Peer& peer, const classic::PrintText& print) {
  const int rank = peer.hello.rank;
  if (IsAssigned(rank)) {
    RequireOwner(connection, rank, peer.hello);
  } else if (!connections_.authenticated(connection)) {
    // A peer that knows the token needs no rank: workers that communicate over MPI get none from the tracker.
    throw wire::ProtocolError(fmt::format("it prints as rank {}, which has not been assigned", rank));
  }
  connections_.Add(Print{wire::PrintableLines(print.text), rank});
  Forget(connection);
}

void ClassicJob::HandleWait(ConnectionId connection, Peer& peer) {
  members_[peer.rank].waits = connection;
  connections_.Send(connection, classic::Encode(classic::TrackerWord::kHeld));
  if (!linked_) CallBackThoseWhoWait();  // a lost worker has returned and needs their state
}

/// Reverts the shutdown of a rank, whose worker was lost while waiting for the others, or is needed again.
void ClassicJob::ReturnToJob(int rank) {
  members_[rank].waits = 0;
  members_[rank].shut_down = members_[rank].shut_down_before = false;
  --num_shut_down_;
  connections_.Write({.kind = Note::Kind::kReturned, .rank = rank});
}

/// Calls back the workers that wait for the others to shut down: a lost worker has returned and needs their
/// state.
void ClassicJob::CallBackThoseWhoWait() {
  if (num_shut_down_ == 0) return;
  for (int rank = 0; rank < options_.num_workers; ++rank) {
    const ConnectionId connection = members_[rank].waits;
    if (connection == 0) continue;
    ReturnToJob(rank);
    connections_.Send(connection, classic::Encode(classic::TrackerWord::kComeBack));
    Forget(connection);
  }
}

// Whether text to print may still arrive: a worker that has shut down may have printed earlier on another
// connection, which has not been read yet.
bool ClassicJob::SomebodyPrints() const {
  return std::any_of(peers_.begin(), peers_.end(), [](const auto& entry) {
    return entry.second.phase == Phase::kHello || entry.second.phase == Phase::kPrint;
  });
}

void ClassicJob::FinishWhenAllHaveShutDown(TimePoint now) {
  if (finished_ || num_shut_down_ < options_.num_workers) return;
  if (finish_by_ && now < *finish_by_ && SomebodyPrints()) return;
  finished_ = true;
  std::vector<ConnectionId> leaving;
  for (const auto& [connection, peer] : peers_) {
    if (peer.phase == Phase::kLeaves) leaving.push_back(connection);
  }
  // This includes workers that have not sent WaitForOthers yet. The other workers have closed their
  // connections.
  for (const ConnectionId connection : leaving) {
    connections_.Send(connection, classic::Encode(classic::TrackerWord::kReleased));
    Forget(connection);
  }
  connections_.Add(Finished{});
}

void ClassicJob::AddPending(ConnectionId connection, Peer& peer, TimePoint now) {
  const std::string& task_id = peer.hello.task_id;
  if (all_assigned()) {
    throw wire::ProtocolError(fmt::format("task {} is not known and all {} ranks are taken",
                                          wire::Printable(task_id), options_.num_workers));
  }
  peer.phase = Phase::kWaitsForRank;
  if (const auto earlier = unranked_.Add(connection, task_id, connections_.host(connection))) {
    Drop(*earlier, fmt::format("task {} has connected again", wire::Printable(task_id)));
  }
  if (peer.hello.world_size > 0) asking_.insert(connection);
  connections_.Log(Severity::kDebug, fmt::format("{} joined", connections_.Name(connection)));
  connections_.Add(Joined{num_assigned_ + static_cast<int>(unranked_.size()), options_.num_workers});
  AssignPending(now);
}

void ClassicJob::AssignPending(TimePoint now) {
  if (unranked_.empty() || num_assigned_ + static_cast<int>(unranked_.size()) < options_.num_workers) return;
  int rank = 0;
  for (const UnrankedWorkers::Worker& worker : unranked_.TakeSorted(options_.sort_by)) {
    while (rank < options_.num_workers && members_[rank].assigned) ++rank;
    if (rank == options_.num_workers) {
      // More workers waited than there are ranks: the worker that had requested a larger world has gone.
      Drop(worker.connection, fmt::format("all {} ranks are taken", options_.num_workers));
      continue;
    }
    Assign(worker.connection, peers_.at(worker.connection), rank, now);
  }
}

void ClassicJob::Assign(ConnectionId connection, Peer& peer, int rank, TimePoint now) {
  CallBackThoseWhoWait();
  Member& member = members_[rank];
  if (member.exchange != 0) Drop(member.exchange, fmt::format("rank {} has connected again", rank));
  if (!member.assigned) ++num_assigned_;
  member.assigned = true;
  member.task_id = peer.hello.task_id;
  member.host = connections_.host(connection);
  member.exchange = connection;
  if (member.task_id != classic::kNoTaskId) task_ranks_[member.task_id] = rank;
  connections_.Write(
      {.kind = Note::Kind::kAssigned, .rank = rank, .task_id = member.task_id, .host = member.host});
  if (linked_) {
    linked_ = false;
    incomplete_since_ = now;
  }
  asking_.erase(connection);
  peer.rank = rank;
  Name(connection, peer);
  peer.phase = Phase::kAssigned;
  connections_.SetDeadline(connection, now + kLinkTimeout);
  broker_->Join(rank);

  classic::Assignment assignment;
  assignment.rank = rank;
  assignment.parent = topology_->parent(rank);
  assignment.world_size = options_.num_workers;
  const std::vector<int>& tree = topology_->tree_neighbors(rank);
  assignment.tree_neighbors.assign(tree.begin(), tree.end());
  assignment.ring_prev = topology_->ring_prev(rank);
  assignment.ring_next = topology_->ring_next(rank);
  connections_.Send(connection, classic::Encode(assignment));
  connections_.Add(Assigned{member.task_id, rank, member.host});
  connections_.Log(Severity::kDebug, fmt::format("{}: {}", connections_.Name(connection),
                                                 classic::CommandName(peer.hello.command)));
}

// --- links -----------------------------------------------------------------------------------------------

void ClassicJob::HandleGoodLinks(ConnectionId connection, Peer& peer, const classic::GoodLinks& good,
                                 TimePoint now) {
  if (peer.phase != Phase::kAssigned) {
    throw wire::ProtocolError("it named its good links before it was given a rank");
  }
  const std::vector<int> ranks(good.ranks.begin(), good.ranks.end());
  if (peer.retries) {
    std::vector<int> made;
    for (const int planned : broker_->Planned(peer.rank)) {
      if (std::find(ranks.begin(), ranks.end(), planned) != ranks.end()) made.push_back(planned);
    }
    connections_.Write({.kind = Note::Kind::kLinked, .rank = peer.rank, .peers = std::move(made)});
  }
  if (const auto other = broker_->ReportGood(peer.rank, ranks, peer.retries, now)) {
    throw wire::ProtocolError(
        fmt::format("it names rank {} as a good link, but that rank is not its neighbour", *other));
  }
  peer.phase = Phase::kWaitsForPlan;
  connections_.SetDeadline(connection, std::nullopt);
  SendReadyPlans(now);
}

void ClassicJob::SendReadyPlans(TimePoint now) {
  for (const LinkBroker::Plan& plan : broker_->TakeReady(now)) {
    classic::LinkPlan message;
    message.num_accept = plan.num_accept;
    for (const int rank : plan.connect) {
      message.connect.push_back({members_[rank].host, members_[rank].listen_port, rank});
    }
    const ConnectionId connection = members_[plan.rank].exchange;
    Peer& peer = peers_.at(connection);
    peer.phase = Phase::kPlanned;
    connections_.SetDeadline(connection, now + kLinkTimeout);
    connections_.Send(connection, classic::Encode(message));
  }
}

void ClassicJob::HandleLinkErrors(ConnectionId connection, Peer& peer, const classic::LinkErrors& errors,
                                  TimePoint now) {
  if (peer.phase != Phase::kPlanned) {
    throw wire::ProtocolError("it reported on its links before it was told which ranks to connect to");
  }
  connections_.SetDeadline(connection, now + kLinkTimeout);
  peer.retries = errors.count > 0;
  peer.phase = peer.retries ? Phase::kAssigned : Phase::kLinked;
  if (peer.retries) {
    connections_.Log(Severity::kDebug, fmt::format("{}: {} connections failed, trying again",
                                                   connections_.Name(connection), errors.count));
  } else {
    connections_.Write(
        {.kind = Note::Kind::kLinked, .rank = peer.rank, .peers = broker_->Planned(peer.rank)});
    broker_->ReportLinked(peer.rank);
  }
}

void ClassicJob::HandleListenPort(ConnectionId connection, Peer& peer, const classic::ListenPort& port,
                                  TimePoint now) {
  const int rank = peer.rank;
  members_[rank].listen_port = port.port;
  members_[rank].has_linked = begun_ = true;
  members_[rank].exchange = 0;
  broker_->ReportListening(rank);
  const std::set<int>& awaited = broker_->awaited(rank);
  connections_.Write({.kind = Note::Kind::kListens,
                      .rank = rank,
                      .port = port.port,
                      .peers = {awaited.begin(), awaited.end()}});
  connections_.Send(connection, classic::Encode(classic::TrackerWord::kNoted));
  Forget(connection);
  SendReadyPlans(now);
  if (!linked_ && broker_->complete()) {
    linked_ = true;
    connections_.Log(Severity::kDebug, fmt::format("all {} workers are linked", options_.num_workers));
    connections_.Add(Linked{});
  }
}

// --- time ------------------------------------------------------------------------------------------------

void ClassicJob::Tick(TimePoint now) {
  if (finished_) return;
  if (broker_) SendReadyPlans(now);
  FinishWhenAllHaveShutDown(now);
  if (finished_) return;
  if (HasDeadline() && now - incomplete_since_ >= options_.timeout) {
    finished_ = true;
    connections_.Add(Finished{DescribeTimeout(options_.timeout, DescribeMissing())});
  }
}

std::optional<TimePoint> ClassicJob::NextDeadline() const {
  if (finished_) return std::nullopt;
  std::optional<TimePoint> next;
  const auto consider = [&](TimePoint time) { next = next ? std::min(*next, time) : time; };
  if (broker_ && broker_->NextRetry()) consider(*broker_->NextRetry());
  if (HasDeadline()) consider(incomplete_since_ + options_.timeout);
  if (finish_by_ && num_shut_down_ == options_.num_workers) consider(*finish_by_);
  return next;
}

// --- queries ---------------------------------------------------------------------------------------------

std::optional<int> ClassicJob::RankOfTask(const std::string& task_id) const {
  const auto found = task_ranks_.find(task_id);
  if (found == task_ranks_.end()) return std::nullopt;
  return found->second;
}

bool ClassicJob::TaskHasShutDown(const std::string& task_id) const {
  const auto rank = RankOfTask(task_id);
  return rank && members_[*rank].shut_down && members_[*rank].waits == 0;
}

bool ClassicJob::TaskHasLinked(const std::string& task_id) const {
  const auto rank = RankOfTask(task_id);
  return rank && members_[*rank].has_linked;
}

std::string ClassicJob::DescribeMissing() const {
  std::vector<std::string> came;
  std::vector<std::string> task_ids;
  std::vector<std::string> unlinked;
  const auto name_of = [&](int rank) {
    const Member& member = members_[rank];
    return fmt::format("task {} ({}, rank {})", wire::Printable(member.task_id), member.host, rank);
  };
  for (int rank = 0; rank < static_cast<int>(members_.size()); ++rank) {
    if (!members_[rank].assigned) continue;
    task_ids.push_back(members_[rank].task_id);
    came.push_back(name_of(rank));
    if (!broker_->listening(rank)) unlinked.push_back(name_of(rank));
  }
  for (const UnrankedWorkers::Worker& worker : unranked_.List()) {
    task_ids.push_back(worker.task_id);
    came.push_back(fmt::format("task {} ({})", wire::Printable(worker.task_id), worker.host));
  }
  std::string text = DescribeAttendance(came, task_ids, options_.num_workers);
  if (!unlinked.empty()) text += fmt::format("; not linked yet: {}", ListSome(unlinked));
  std::vector<std::string> absent;
  for (const int rank : broker_ ? broker_->Absentees() : std::set<int>()) {
    if (members_[rank].assigned) absent.push_back(name_of(rank));
  }
  if (!absent.empty()) text += fmt::format("; did not return to be linked again: {}", ListSome(absent));
  return text;
}

}  // namespace warren::tracker
