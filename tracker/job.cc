#include "tracker/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <tuple>

namespace warren::tracker {
namespace {

namespace classic = wire::classic;

/// Entries a message lists before it says "and 980 more".
constexpr std::size_t kMaxListed = 16;

bool IsNumber(std::string_view text) {
  return !text.empty() && text.size() <= 18 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// Task ids sort as numbers when they are numbers (before all others), else as text; workers without a task
/// id come last.
std::tuple<int, long long, std::string> TaskOrder(const std::string& task_id) {
  if (IsNumber(task_id)) return {0, std::stoll(task_id), {}};
  return {task_id == classic::kNoTaskId ? 2 : 1, 0, task_id};
}

std::string Quoted(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 64)) out += c >= 0x20 && c != 0x7f ? c : '?';
  return out;
}

std::string List(const std::vector<std::string>& entries) {
  const std::size_t shown = std::min(entries.size(), kMaxListed);
  std::string text = fmt::format("{}", fmt::join(entries.begin(), entries.begin() + shown, ", "));
  if (shown < entries.size()) text += fmt::format(" and {} more", entries.size() - shown);
  return text;
}

}  // namespace

Job::Job(JobOptions options, TimePoint now)
    : options_(options), configured_workers_(options.num_workers), incomplete_since_(now) {
  if (options_.num_workers < 1 || options_.num_workers > classic::kMaxWorldSize) {
    throw std::invalid_argument(
        fmt::format("a job of {} workers: expected 1 to {}", options_.num_workers, classic::kMaxWorldSize));
  }
}

// --- connections -----------------------------------------------------------------------------------------

void Job::Opened(ConnectionId connection, std::string host, std::uint16_t port, TimePoint now) {
  Peer& peer = peers_[connection];
  peer.host = std::move(host);
  peer.port = port;
  strangers_.insert(connection);
  SetDeadline(connection, peer, now + kHelloTimeout);
  if (strangers_.size() > kMaxStrangers + 2 * static_cast<std::size_t>(options_.num_workers)) {
    DropOldestStranger();
  }
}

bool Job::DropOldestStranger() {
  if (strangers_.empty()) return false;
  Drop(*strangers_.begin(), "too many connections that say nothing, and this one is the oldest");
  return true;
}

void Job::Received(ConnectionId connection, std::string_view bytes, TimePoint now) {
  Peer* peer = Find(connection);
  if (peer == nullptr || finished_) return;
  try {
    if (peer->phase <= Phase::kDialect) {
      if (!ReadHead(connection, *peer, bytes)) return;
    } else {
      peer->stream.Append(bytes);
    }
    // Handling a message may end this connection.
    for (peer = Find(connection); peer != nullptr; peer = Find(connection)) {
      auto message = peer->stream.Next();
      if (!message) break;
      HandleMessage(connection, *peer, std::move(*message), now);
    }
  } catch (const wire::ProtocolError& error) {
    Drop(connection, error.what());
  }
}

void Job::Closed(ConnectionId connection, std::string_view why) {
  const Peer* peer = Find(connection);
  if (peer == nullptr) return;
  if (peer->phase == Phase::kLeaves) {
    const int rank = peer->rank;
    const bool waited = members_[rank].waits == connection;
    if (waited) {
      Log(Severity::kDebug,
          fmt::format("{}: {} while it waited for the others to end", Name(connection, *peer), why));
      ReturnToJob(rank);
    }
    return Forget(connection);
  }
  const std::string_view owed = peer->phase == Phase::kMagic     ? "the magic number"
                                : peer->phase == Phase::kDialect ? "the rank and world size"
                                                                 : peer->stream.Expected();
  Drop(connection, peer->phase == Phase::kWaitsForRank
                       ? fmt::format("{} while it waited for the other workers", why)
                       : fmt::format("{}, expected {}", why, owed));
}

Job::Peer* Job::Find(ConnectionId connection) {
  const auto found = peers_.find(connection);
  return found == peers_.end() ? nullptr : &found->second;
}

std::string Job::Name(ConnectionId, const Peer& peer) const {
  std::string name = fmt::format("{}:{}", peer.host, peer.port);
  if (peer.phase < Phase::kPrint) return name;
  if (peer.hello.task_id != classic::kNoTaskId) name += fmt::format(", task {}", Quoted(peer.hello.task_id));
  if (peer.rank >= 0) name += fmt::format(", rank {}", peer.rank);
  return name;
}

void Job::Drop(ConnectionId connection, const std::string& reason) {
  const Peer& peer = *Find(connection);
  Log(Severity::kWarning, fmt::format("dropped {}: {}", Name(connection, peer), reason));
  if (peer.rank >= 0 && members_[peer.rank].exchange == connection) {
    members_[peer.rank].exchange = 0;
    broker_->Leave(peer.rank);
    if (!members_[peer.rank].has_linked) Unassign(peer.rank);
  }
  Forget(connection);
}

// Nobody has a link with this rank yet: whoever comes next may have it, the same task again or, if this one
// was no worker at all, the one it kept out.
void Job::Unassign(int rank) {
  const auto task = task_ranks_.find(members_[rank].task_id);
  if (task != task_ranks_.end() && task->second == rank) task_ranks_.erase(task);
  members_[rank] = {};
  --num_assigned_;
  Write({.kind = Note::Kind::kUnassigned, .rank = rank});
}

void Job::Forget(ConnectionId connection) {
  const auto found = peers_.find(connection);
  SetDeadline(connection, found->second, std::nullopt);
  strangers_.erase(connection);
  if (pending_.erase(connection) > 0) {
    const auto task = pending_tasks_.find(found->second.hello.task_id);
    if (task != pending_tasks_.end() && task->second == connection) pending_tasks_.erase(task);
  }
  peers_.erase(found);
  actions_.emplace_back(Close{connection});
}

void Job::SetDeadline(ConnectionId connection, Peer& peer, std::optional<TimePoint> deadline) {
  if (peer.deadline) deadlines_.erase({*peer.deadline, connection});
  if (deadline) deadlines_.emplace(*deadline, connection);
  peer.deadline = deadline;
}

void Job::Greeted(ConnectionId connection, Peer& peer) {
  strangers_.erase(connection);
  SetDeadline(connection, peer, std::nullopt);
}

// --- messages --------------------------------------------------------------------------------------------

// Reads what precedes the classic stream. Returns true once that stream has bytes to look at.
bool Job::ReadHead(ConnectionId connection, Peer& peer, std::string_view bytes) {
  peer.head.Append(bytes);
  if (peer.phase == Phase::kMagic) {
    const auto magic = peer.head.Int();
    if (!magic) return false;
    if (*magic != wire::kMagic) {
      throw wire::ProtocolError(
          fmt::format("not a worker: its first four bytes are {:#010x}, expected {:#010x}",
                      static_cast<std::uint32_t>(*magic), static_cast<std::uint32_t>(wire::kMagic)));
    }
    actions_.emplace_back(Send{connection, classic::EncodeMagic()});
    peer.phase = Phase::kDialect;
  }
  const std::string_view rest = peer.head.Peek(peer.head.available());
  const auto dialect = wire::DetectDialect(rest);
  if (!dialect) return false;
  if (*dialect == wire::Dialect::kCollective) {
    throw wire::ProtocolError(
        "it speaks the collective dialect of XGBoost 2.1 and later, which this version does not serve; "
        "use XGBoost 2.0 or earlier");
  }
  peer.stream.Append(rest);
  peer.head = {};
  peer.phase = Phase::kHello;
  return true;
}

void Job::HandleMessage(ConnectionId connection, Peer& peer, classic::WorkerMessage message, TimePoint now) {
  if (const auto* hello = std::get_if<classic::Hello>(&message)) {
    HandleHello(connection, peer, *hello, now);
  } else if (auto* print = std::get_if<classic::PrintText>(&message)) {
    actions_.emplace_back(Print{std::move(print->text)});
    Forget(connection);
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

void Job::HandleHello(ConnectionId connection, Peer& peer, const classic::Hello& hello, TimePoint now) {
  peer.hello = hello;
  peer.phase = Phase::kPrint;
  switch (hello.command) {
    case classic::Command::kPrint:
      return;  // still a stranger until its text is here
    case classic::Command::kShutdown:
      return HandleShutdown(connection, peer);
    case classic::Command::kStart:
      Greeted(connection, peer);
      return HandleStart(connection, peer, now);
    case classic::Command::kRecover:
      Greeted(connection, peer);
      return HandleRecover(connection, peer, now);
  }
}

// What the workers that are here want, or what the tracker was started with.
int Job::ExpectedWorldSize() const {
  if (num_assigned_ > 0) return options_.num_workers;
  for (const ConnectionId connection : pending_) {
    const int asked = peers_.at(connection).hello.world_size;
    if (asked > 0) return asked;
  }
  return configured_workers_;
}

void Job::SettleWorldSize(const classic::Hello& hello) {
  int world_size = ExpectedWorldSize();
  if (hello.world_size > 0 && hello.world_size != world_size) {
    const bool first = pending_.empty() && num_assigned_ == 0;
    if (!first || options_.world_size_is_fixed) {
      throw wire::ProtocolError(
          fmt::format("it was told of a world of {} workers, this job has {}", hello.world_size, world_size));
    }
    Log(Severity::kInfo,
        fmt::format("the first worker asks for {} workers instead of {}", hello.world_size, world_size));
    world_size = hello.world_size;
  }
  if (topology_ && topology_->size() == world_size) return;
  SetWorldSize(world_size);
  Write({.kind = Note::Kind::kWorld, .rank = world_size});
}

void Job::SetWorldSize(int world_size) {
  options_.num_workers = world_size;
  topology_.emplace(world_size);
  broker_.emplace(*topology_);
  members_.assign(world_size, {});
}

// A rank belongs to the task it was given to; workers without a task id are taken at their word.
void Job::RequireOwner(int rank, const classic::Hello& hello) const {
  const std::string& owner = members_[rank].task_id;
  const bool anonymous = owner == classic::kNoTaskId || hello.task_id == classic::kNoTaskId;
  if (!anonymous && owner != hello.task_id) {
    throw wire::ProtocolError(fmt::format("rank {} belongs to task {}", rank, Quoted(owner)));
  }
}

int Job::KnownRank(const classic::Hello& hello) const {
  if (hello.rank >= 0) return hello.rank;
  const auto known = task_ranks_.find(hello.task_id);
  return known == task_ranks_.end() ? -1 : known->second;
}

void Job::HandleStart(ConnectionId connection, Peer& peer, TimePoint now) {
  SettleWorldSize(peer.hello);
  const int rank = KnownRank(peer.hello);
  if (rank >= options_.num_workers) {
    throw wire::ProtocolError(
        fmt::format("its rank is {}, expected 0 to {}", rank, options_.num_workers - 1));
  }
  if (rank < 0) return AddPending(connection, peer, now);
  const Member& member = members_[rank];
  if (member.waits != 0 || member.shut_down_before) ReturnToJob(rank);  // its end is still to be heard of
  if (member.shut_down) {
    throw wire::ProtocolError(fmt::format("rank {} has already shut down and cannot start again", rank));
  }
  if (member.assigned) RequireOwner(rank, peer.hello);
  Assign(connection, peer, rank, now);
  AssignPending(now);
}

void Job::HandleRecover(ConnectionId connection, Peer& peer, TimePoint now) {
  const int rank = peer.hello.rank;
  const bool known = rank >= 0 && rank < static_cast<int>(members_.size()) && members_[rank].assigned;
  if (!known) {
    throw wire::ProtocolError(
        fmt::format("it wants to recover as rank {}, which no worker has been given", rank));
  }
  RequireOwner(rank, peer.hello);
  if (members_[rank].shut_down_before) ReturnToJob(rank);  // called back by the tracker before this one
  if (members_[rank].shut_down) {
    throw wire::ProtocolError(fmt::format("rank {} has already shut down and cannot recover", rank));
  }
  SettleWorldSize(peer.hello);
  Assign(connection, peer, rank, now);
}

void Job::HandleShutdown(ConnectionId connection, Peer& peer) {
  const int rank = peer.hello.rank;
  if (rank < 0 || rank >= static_cast<int>(members_.size()) || !members_[rank].assigned) {
    throw wire::ProtocolError(fmt::format("it shuts down as rank {}, which no worker has been given", rank));
  }
  RequireOwner(rank, peer.hello);
  Member& member = members_[rank];
  // It waited for the others when the tracker before this one died, and says so again.
  const bool again = member.shut_down && std::exchange(member.shut_down_before, false);
  if (member.shut_down && !again) {
    throw wire::ProtocolError(fmt::format("rank {} has already shut down", rank));
  }
  if (!again) {
    member.shut_down = true;
    ++num_shut_down_;
    Write({.kind = Note::Kind::kShutDown, .rank = rank});
  }
  Log(Severity::kDebug, fmt::format("{} shut down as rank {}", Name(connection, peer), rank));
  peer.rank = rank;
  peer.phase = Phase::kLeaves;  // until it closes, or says that it waits for the others
  Greeted(connection, peer);
  FinishWhenAllHaveShutDown();
}

void Job::HandleWait(ConnectionId connection, Peer& peer) {
  members_[peer.rank].waits = connection;
  actions_.emplace_back(Send{connection, classic::Encode(classic::HoldWord::kHeld)});
  if (!linked_) CallBackThoseWhoWait();  // who was lost has come already
}

/// It had said shutdown and waited for the others; now it takes part again, or what takes its place does.
void Job::ReturnToJob(int rank) {
  members_[rank].waits = 0;
  members_[rank].shut_down = members_[rank].shut_down_before = false;
  --num_shut_down_;
  Write({.kind = Note::Kind::kReturned, .rank = rank});
}

/// Somebody who was lost has come again and needs what they know.
void Job::CallBackThoseWhoWait() {
  if (num_shut_down_ == 0) return;
  for (int rank = 0; rank < options_.num_workers; ++rank) {
    const ConnectionId connection = members_[rank].waits;
    if (connection == 0) continue;
    ReturnToJob(rank);
    actions_.emplace_back(Send{connection, classic::Encode(classic::HoldWord::kComeBack)});
    Forget(connection);
  }
}

void Job::FinishWhenAllHaveShutDown() {
  if (num_shut_down_ < options_.num_workers) return;
  finished_ = true;
  std::vector<ConnectionId> leaving;
  for (const auto& [connection, peer] : peers_) {
    if (peer.phase == Phase::kLeaves) leaving.push_back(connection);
  }
  for (const ConnectionId connection : leaving) {
    if (members_[peers_.at(connection).rank].waits == connection)
      actions_.emplace_back(Send{connection, classic::Encode(classic::HoldWord::kReleased)});
    Forget(connection);
  }
  actions_.emplace_back(Finished{});
}

void Job::AddPending(ConnectionId connection, Peer& peer, TimePoint now) {
  const std::string& task_id = peer.hello.task_id;
  if (all_assigned()) {
    throw wire::ProtocolError(fmt::format("task {} is not known and all {} ranks are taken", Quoted(task_id),
                                          options_.num_workers));
  }
  peer.phase = Phase::kWaitsForRank;
  pending_.insert(connection);
  if (task_id != classic::kNoTaskId) {
    const auto earlier = pending_tasks_.find(task_id);
    if (earlier != pending_tasks_.end()) {
      Drop(earlier->second, fmt::format("task {} has connected again", Quoted(task_id)));
    }
    pending_tasks_[task_id] = connection;
  }
  Log(Severity::kDebug, fmt::format("{} joined", Name(connection, peer)));
  actions_.emplace_back(Joined{num_assigned_ + static_cast<int>(pending_.size()), options_.num_workers});
  AssignPending(now);
}

void Job::AssignPending(TimePoint now) {
  if (pending_.empty() || num_assigned_ + static_cast<int>(pending_.size()) < options_.num_workers) return;
  std::vector<ConnectionId> order(pending_.begin(), pending_.end());  // in order of arrival
  const auto key = [&](ConnectionId connection) {
    const Peer& peer = peers_.at(connection);
    auto task = TaskOrder(peer.hello.task_id);
    if (options_.sort_by == SortBy::kTask) return std::tuple(std::string(), std::move(task), peer.host);
    return std::tuple(peer.host, std::move(task), std::string());
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](ConnectionId a, ConnectionId b) { return key(a) < key(b); });
  pending_.clear();
  pending_tasks_.clear();
  int rank = 0;
  for (const ConnectionId connection : order) {
    while (rank < options_.num_workers && members_[rank].assigned) ++rank;
    if (rank == options_.num_workers) {
      // More waited than there are ranks: the one that had asked for a larger world has gone.
      Drop(connection, fmt::format("all {} ranks are taken", options_.num_workers));
      continue;
    }
    Assign(connection, peers_.at(connection), rank, now);
  }
}

void Job::Assign(ConnectionId connection, Peer& peer, int rank, TimePoint now) {
  CallBackThoseWhoWait();
  Member& member = members_[rank];
  if (member.exchange != 0) Drop(member.exchange, fmt::format("rank {} has connected again", rank));
  if (!member.assigned) ++num_assigned_;
  member.assigned = true;
  member.task_id = peer.hello.task_id;
  member.host = peer.host;
  member.exchange = connection;
  if (member.task_id != classic::kNoTaskId) task_ranks_[member.task_id] = rank;
  Write({.kind = Note::Kind::kAssigned, .rank = rank, .task_id = member.task_id, .host = member.host});
  if (linked_) {
    linked_ = false;
    incomplete_since_ = now;
  }
  peer.rank = rank;
  peer.phase = Phase::kAssigned;
  SetDeadline(connection, peer, now + kLinkTimeout);
  broker_->Join(rank);

  classic::Assignment assignment;
  assignment.rank = rank;
  assignment.parent = topology_->parent(rank);
  assignment.world_size = options_.num_workers;
  const std::vector<int>& tree = topology_->tree_neighbors(rank);
  assignment.tree_neighbors.assign(tree.begin(), tree.end());
  assignment.ring_prev = topology_->ring_prev(rank);
  assignment.ring_next = topology_->ring_next(rank);
  actions_.emplace_back(Send{connection, classic::Encode(assignment)});
  actions_.emplace_back(Assigned{member.task_id, rank, member.host});
  Log(Severity::kDebug,
      fmt::format("{}: {}", Name(connection, peer), classic::CommandName(peer.hello.command)));
}

// --- links -----------------------------------------------------------------------------------------------

void Job::HandleGoodLinks(ConnectionId connection, Peer& peer, const classic::GoodLinks& good,
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
    Write({.kind = Note::Kind::kLinked, .rank = peer.rank, .peers = std::move(made)});
  }
  if (const auto stranger = broker_->ReportGood(peer.rank, ranks, peer.retries, now)) {
    throw wire::ProtocolError(
        fmt::format("it names rank {} as a good link, which is no neighbour", *stranger));
  }
  peer.phase = Phase::kWaitsForPlan;
  SetDeadline(connection, peer, std::nullopt);
  SendReadyPlans(now);
}

void Job::SendReadyPlans(TimePoint now) {
  for (const LinkBroker::Plan& plan : broker_->TakeReady(now)) {
    classic::LinkPlan message;
    message.num_accept = plan.num_accept;
    for (const int rank : plan.connect) {
      message.connect.push_back({members_[rank].host, members_[rank].listen_port, rank});
    }
    const ConnectionId connection = members_[plan.rank].exchange;
    Peer& peer = peers_.at(connection);
    peer.phase = Phase::kPlanned;
    SetDeadline(connection, peer, now + kLinkTimeout);
    actions_.emplace_back(Send{connection, classic::Encode(message)});
  }
}

void Job::HandleLinkErrors(ConnectionId connection, Peer& peer, const classic::LinkErrors& errors,
                           TimePoint now) {
  if (peer.phase != Phase::kPlanned) {
    throw wire::ProtocolError("it reported on its links before it was told whom to connect to");
  }
  SetDeadline(connection, peer, now + kLinkTimeout);
  peer.retries = errors.count > 0;
  peer.phase = peer.retries ? Phase::kAssigned : Phase::kLinked;
  if (peer.retries) {
    Log(Severity::kDebug,
        fmt::format("{}: {} connections failed, trying again", Name(connection, peer), errors.count));
  } else {
    Write({.kind = Note::Kind::kLinked, .rank = peer.rank, .peers = broker_->Planned(peer.rank)});
    broker_->ReportLinked(peer.rank);
  }
}

void Job::HandleListenPort(ConnectionId connection, Peer& peer, const classic::ListenPort& port,
                           TimePoint now) {
  const int rank = peer.rank;
  members_[rank].listen_port = port.port;
  members_[rank].has_linked = true;
  members_[rank].exchange = 0;
  Forget(connection);
  broker_->ReportListening(rank);
  const std::set<int>& awaited = broker_->awaited(rank);
  Write({.kind = Note::Kind::kListens,
         .rank = rank,
         .port = port.port,
         .peers = {awaited.begin(), awaited.end()}});
  SendReadyPlans(now);
  if (!linked_ && broker_->complete()) {
    linked_ = true;
    Log(Severity::kDebug, fmt::format("all {} workers are linked", options_.num_workers));
    actions_.emplace_back(Linked{});
  }
}

// --- time ------------------------------------------------------------------------------------------------

void Job::Tick(TimePoint now) {
  if (finished_) return;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const ConnectionId late = deadlines_.begin()->second;
    Closed(late, "it said nothing for too long");
  }
  if (broker_) SendReadyPlans(now);
  if (HasDeadline() && now - incomplete_since_ >= options_.timeout) {
    Fail(fmt::format("workers are missing after {:g} s: {}",
                     std::chrono::duration<double>(options_.timeout).count(), DescribeMissing()));
  }
}

std::optional<TimePoint> Job::NextDeadline() const {
  if (finished_) return std::nullopt;
  std::optional<TimePoint> next;
  const auto consider = [&](TimePoint time) { next = next ? std::min(*next, time) : time; };
  if (!deadlines_.empty()) consider(deadlines_.begin()->first);
  if (broker_ && broker_->NextRetry()) consider(*broker_->NextRetry());
  if (HasDeadline()) consider(incomplete_since_ + options_.timeout);
  return next;
}

void Job::Fail(std::string reason) {
  finished_ = true;
  actions_.emplace_back(Finished{std::move(reason)});
}

void Job::Write(Note note) {
  if (options_.takes_notes) actions_.emplace_back(std::move(note));
}

void Job::Log(Severity severity, std::string text) {
  actions_.emplace_back(Report{severity, std::move(text)});
}

std::vector<Action> Job::TakeActions() {
  return std::exchange(actions_, {});
}

// --- questions -------------------------------------------------------------------------------------------

std::optional<int> Job::RankOfTask(const std::string& task_id) const {
  const auto found = task_ranks_.find(task_id);
  if (found == task_ranks_.end()) return std::nullopt;
  return found->second;
}

bool Job::TaskHasShutDown(const std::string& task_id) const {
  const auto rank = RankOfTask(task_id);
  return rank && members_[*rank].shut_down && members_[*rank].waits == 0;
}

bool Job::TaskHasLinked(const std::string& task_id) const {
  const auto rank = RankOfTask(task_id);
  return rank && members_[*rank].has_linked;
}

std::string Job::DescribeMissing() const {
  std::vector<std::string> came;
  std::vector<std::string> unlinked;
  std::set<std::string> task_ids;
  for (int rank = 0; rank < static_cast<int>(members_.size()); ++rank) {
    const Member& member = members_[rank];
    if (!member.assigned) continue;
    task_ids.insert(member.task_id);
    std::string name = fmt::format("task {} ({}, rank {})", Quoted(member.task_id), member.host, rank);
    if (!broker_->listening(rank)) unlinked.push_back(name);
    came.push_back(std::move(name));
  }
  for (const ConnectionId connection : pending_) {
    const Peer& peer = peers_.at(connection);
    task_ids.insert(peer.hello.task_id);
    came.push_back(fmt::format("task {} ({})", Quoted(peer.hello.task_id), peer.host));
  }
  std::string text = fmt::format("{} of {} workers came", came.size(), options_.num_workers);
  if (!came.empty()) text += fmt::format(": {}", List(came));
  // Launchers number their tasks from 0; where that holds the missing ones have names.
  std::vector<std::string> absent;
  for (int task = 0; task < options_.num_workers; ++task) {
    if (!task_ids.contains(std::to_string(task))) absent.push_back(std::to_string(task));
  }
  const auto missing = static_cast<std::size_t>(options_.num_workers) - came.size();
  if (missing > 0)
    text += absent.size() == missing ? fmt::format("; not: task {}", List(absent))
                                     : fmt::format("; {} did not", missing);
  if (!unlinked.empty()) text += fmt::format("; still to be linked: {}", List(unlinked));
  std::vector<std::string> absent_ranks;
  for (const int rank : broker_ ? broker_->Absentees() : std::set<int>()) {
    const Member& member = members_[rank];
    if (member.assigned) {
      absent_ranks.push_back(fmt::format("task {} ({}, rank {})", Quoted(member.task_id), member.host, rank));
    }
  }
  if (!absent_ranks.empty()) text += fmt::format("; did not come to be linked again: {}", List(absent_ranks));
  return text;
}

}  // namespace warren::tracker
