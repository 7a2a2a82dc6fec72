#include "tracker/generations.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "tracker/unranked_workers.h"
#include "wire/printable.h"

namespace warren::tracker {

using wire::GenerationWord;
using wire::MemberWord;

Generations::Generations(ConnectionTable& connections, const ElasticOptions& options, TimePoint now)
    : connections_(connections),
      options_(options),
      incomplete_since_(now),
      limited_from_(now),
      waiting_since_(now),
      taken_over_at_(now) {}

// --- take-over by another tracker ------------------------------------------------------------------------

void Generations::TakeOver(const std::vector<Note>& notes, TimePoint now) {
  for (const Note& note : notes) {
    const auto check = [&](bool possible) { RequirePossible(note, possible); };
    switch (note.kind) {
      case Note::Kind::kGeneration:
        check(note.rank == number_ + 1);
        number_ = note.rank;
        size_ = 0;
        broken_ = done_ = is_taken_up_ = false;
        away_.clear();
        break;
      case Note::Kind::kEntered:
        check(number_ > 0 && note.rank == size_ && size_ < options_.max_workers && !note.task_id.empty() &&
              away_.emplace(note.task_id, note.host).second);
        ++size_;
        break;
      case Note::Kind::kEnded:
        check(note.rank == number_);
        broken_ = true;
        break;
      case Note::Kind::kDone:
        check(note.rank == number_);
        done_ = true;
        break;
      case Note::Kind::kResumed:
        check(note.rank == number_ && done_);
        done_ = false;
        is_taken_up_ = true;
        break;
      default:  // belongs to another part of the job
        break;
    }
  }
  incomplete_since_ = waiting_since_ = taken_over_at_ = now;
  if (broken_) cause_ = "the loss of a worker, and of the tracker";
}

// --- connections -----------------------------------------------------------------------------------------

void Generations::Open(ConnectionId connection) {
  connections_.SetIdentified(connection);
  workers_.try_emplace(connection);
}

void Generations::Received(ConnectionId connection, std::string_view bytes, TimePoint now) {
  workers_.at(connection).reader.Append(bytes);
  try {
    // Handling a message may end this connection.
    for (auto found = workers_.find(connection); found != workers_.end(); found = workers_.find(connection)) {
      const auto message = wire::NextMemberMessage(found->second.reader);
      if (!message) return;
      Handle(connection, *message, now);
    }
  } catch (const wire::ProtocolError& error) {
    Drop(connection, error.what(), now);
  }
}

void Generations::Closed(ConnectionId connection, std::string_view why, TimePoint now) {
  connections_.Log(Severity::kDebug, fmt::format("{}: {}", connections_.Name(connection), why));
  Remove(connection, "was lost", now);
}

void Generations::Drop(ConnectionId connection, const std::string& reason, TimePoint now) {
  connections_.LogDrop(connection, reason);
  Tell(connection, GenerationWord::kFailed, "the tracker has dropped this worker: " + reason);
  Remove(connection, "was dropped", now);
}

/// Removes a worker. If it is a member of the current generation, that generation breaks.
void Generations::Remove(ConnectionId connection, const std::string& why, TimePoint now) {
  const auto found = workers_.find(connection);
  const bool was_member = IsMember(found->second);
  const std::string story = fmt::format("task {} (host {}) {}", wire::Printable(found->second.task_id),
                                        connections_.host(connection), why);
  workers_.erase(found);
  connections_.Close(connection);
  if (was_member) Break(story, now);
  Evaluate(now);
  FinishWhenAllAreGone();
}

// --- messages --------------------------------------------------------------------------------------------

void Generations::Handle(ConnectionId connection, const wire::MemberMessage& message, TimePoint now) {
  Worker& worker = workers_.at(connection);
  if (worker.state == State::kSilent) return Introduce(connection, message, now);
  switch (message.word) {
    case MemberWord::kCome:
      return Come(connection, now);
    case MemberWord::kLeave:
      if (worker.generation == number_ && cause_.empty()) {
        cause_ = fmt::format("task {} left", wire::Printable(worker.task_id));
      }
      NoteIfAMemberLeaves(worker, now);
      if (worker.state == State::kMember) WaitAnew(now);  // after the last member, workers are missing
      worker.state = State::kSilent;                      // so that Remove does not treat it as lost
      connections_.Log(Severity::kInfo, fmt::format("{} leaves the job", connections_.Name(connection)));
      return Remove(connection, "left", now);
    case MemberWord::kDone:
      if (!IsMember(worker)) {
        throw wire::ProtocolError("it says that the job is done, and is in no generation");
      }
      return Done(connection);
    case MemberWord::kStay:
      throw wire::ProtocolError("it says that it has returned, and was not away");
  }
}

/// Handles the first message of a membership.
void Generations::Introduce(ConnectionId connection, const wire::MemberMessage& message, TimePoint now) {
  Worker& worker = workers_.at(connection);
  int generation = 0;
  worker.task_id = message.task_id;
  const bool returns = message.word == MemberWord::kStay || message.word == MemberWord::kDone;
  if (returns) std::tie(worker.task_id, generation) = wire::SplitGeneration(message.task_id);
  if (worker.task_id.empty() || (message.word != MemberWord::kCome && generation == 0)) {
    throw wire::ProtocolError("its membership does not begin with its task id");
  }
  connections_.SetName(connection, fmt::format("task {}", wire::Printable(worker.task_id)));
  if (returns) return Return(connection, message.word, generation);
  const auto away = away_.extract(worker.task_id);
  if (!away.empty() && !done_) {
    Break(fmt::format("task {} (host {}) came again", wire::Printable(away.key()), away.mapped()), now);
  }
  RemoveOthersOf(worker.task_id, connection, now);
  Come(connection, now);
}

/// Handles the first message of a worker that was a member of `generation` when it lost the tracker.
void Generations::Return(ConnectionId connection, MemberWord word, int generation) {
  Worker& worker = workers_.at(connection);
  const bool was_away = generation == number_ && away_.erase(worker.task_id) > 0;
  const bool is_member = was_away || (generation == number_ && ReplaceOtherOf(worker.task_id, connection));
  const bool is_replaced = !is_member && std::any_of(workers_.begin(), workers_.end(), [&](const auto& one) {
    return one.first != connection && one.second.task_id == worker.task_id;
  });
  if (is_replaced) throw wire::ProtocolError("another process has taken its place");
  worker.state = State::kMember;
  worker.generation = is_member ? number_ : 0;
  connections_.Log(Severity::kDebug,
                   fmt::format("{} is back in generation {}", connections_.Name(connection), generation));
  if (word == MemberWord::kDone) {
    worker.state = State::kDone;
    worker.generation = generation;
    if (generation == number_) Done(connection);
  } else if (done_ && !is_member) {
    Tell(connection, GenerationWord::kOver);
  } else if (!is_member) {
    const std::string story = "this worker was given up while it had no connection to the tracker";
    connections_.Send(connection,
                      Encode(wire::GenerationMessage{GenerationWord::kBroken, generation, 0, story}));
  } else if (broken_) {
    Tell(connection, GenerationWord::kBroken, cause_);
  } else if (changing_) {
    Tell(connection, GenerationWord::kChange);
  }
}

/// Handles a member's report that the work is done. The first such report of a generation ends the job's
/// work, unless a member has resumed it; workers that wait or were given up are then told that the work is
/// done.
void Generations::Done(ConnectionId connection) {
  workers_.at(connection).state = State::kDone;
  if (is_taken_up_ || std::exchange(done_, true)) return;
  connections_.Write({.kind = Note::Kind::kDone, .rank = number_});
  connections_.Add(WorkDone{true});
  for (const auto& [other, one] : workers_) {
    const bool was_given_up = one.state == State::kMember && one.generation == 0;
    if (one.state == State::kWaits || was_given_up) Tell(other, GenerationWord::kOver);
  }
}

void Generations::Come(ConnectionId connection, TimePoint now) {
  Worker& worker = workers_.at(connection);
  const bool takes_up = worker.state == State::kDone && worker.generation == number_;
  if (takes_up) {
    is_taken_up_ = true;
    if (std::exchange(done_, false)) {
      connections_.Write({.kind = Note::Kind::kResumed, .rank = number_});
      connections_.Add(WorkDone{false});
    }
    if (cause_.empty())
      cause_ = fmt::format("task {} took the work up again", wire::Printable(worker.task_id));
  }
  if (done_) return Tell(connection, GenerationWord::kOver);
  // After one member has resumed the work, the other members do so without being told.
  const bool is_other = !takes_up && !IsMember(worker);
  if (Count(State::kWaits) == 0) {
    waiting_since_ = now;
    if (!broken_) incomplete_since_ = now;
  }
  NoteIfAMemberLeaves(worker, now);
  worker.state = State::kWaits;
  if (is_other && !broken_ && !formed_) {
    if (number_ > 0 && cause_.empty()) {
      cause_ = fmt::format("task {} came", wire::Printable(worker.task_id));
    }
    AskForChange();
  }
  Evaluate(now);
}

void Generations::NoteIfAMemberLeaves(const Worker& worker, TimePoint now) {
  if (!IsMember(worker) || broken_ || first_left_at_) return;
  first_left_at_ = now;
}

/// Members that leave a generation after a network error cannot tell which member is lost. Therefore, breaks
/// the generation if some members have not left it within kLeaveTogether after the first one.
void Generations::BreakIfMembersStay(TimePoint now) {
  if (!first_left_at_ || done_ || NumMembers() == 0 || now - *first_left_at_ < kLeaveTogether) return;
  std::vector<std::string> names;
  for (const auto& [task_id, host] : away_) names.push_back(wire::Printable(task_id));
  for (const auto& [connection, worker] : workers_) {
    if (!IsMember(worker)) continue;
    names.push_back(
        fmt::format("{} (host {})", wire::Printable(worker.task_id), connections_.host(connection)));
  }
  Break(fmt::format("task {} did not leave generation {} with the others", ListSome(names), number_), now);
}

/// Tells the members, once per generation, to leave it together.
void Generations::AskForChange() {
  if (NumMembers() > 0 && !std::exchange(changing_, true)) TellMembers(GenerationWord::kChange);
}

/// Removes the task's other connections: a restarted process may connect before the end of its predecessor is
/// noticed.
void Generations::RemoveOthersOf(const std::string& task_id, ConnectionId connection, TimePoint now) {
  std::vector<ConnectionId> others;
  for (const auto& [other, one] : workers_) {
    if (other != connection && one.state != State::kSilent && one.task_id == task_id) others.push_back(other);
  }
  for (const ConnectionId other : others) {
    Tell(other, GenerationWord::kFailed, "another process has come for the task of this one");
    Remove(other, "was started again", now);
  }
}

/// Removes the old connection of a member that has lost it and returned before the tracker noticed the loss.
/// Returns false if there is no such connection.
bool Generations::ReplaceOtherOf(const std::string& task_id, ConnectionId connection) {
  const auto found = std::find_if(workers_.begin(), workers_.end(), [&](const auto& one) {
    return one.first != connection && one.second.task_id == task_id && one.second.generation == number_ &&
           (one.second.state == State::kMember || one.second.state == State::kDone);
  });
  if (found == workers_.end()) return false;
  connections_.Close(found->first);
  workers_.erase(found);
  return true;
}

void Generations::Tell(ConnectionId connection, GenerationWord word, const std::string& story) {
  connections_.Send(connection, wire::Encode(wire::GenerationMessage{word, number_, size_, story}));
}

void Generations::TellMembers(GenerationWord word, const std::string& story) {
  for (const auto& [connection, worker] : workers_) {
    if (IsMember(worker)) Tell(connection, word, story);
  }
}

// --- generations -----------------------------------------------------------------------------------------

void Generations::Expect(int num_workers, TimePoint now) {
  expected_ = std::min(num_workers, options_.max_workers);
  Evaluate(now);
}

void Generations::TaskFailed(const std::string& task_id, const std::string& how, TimePoint now) {
  for (const auto& [connection, worker] : workers_) {
    if (worker.task_id == task_id && worker.state != State::kDone) return Remove(connection, how, now);
  }
}

void Generations::Break(const std::string& story, TimePoint now) {
  if (number_ == 0 || done_ || std::exchange(broken_, true)) return;
  incomplete_since_ = now;
  first_left_at_.reset();
  cause_ = story;
  connections_.Write({.kind = Note::Kind::kEnded, .rank = number_});
  connections_.Log(Severity::kDebug, fmt::format("generation {} is broken: {}", number_, story));
  TellMembers(GenerationWord::kBroken, story);
}

void Generations::BreakIfOneHasLeft(TimePoint now) {
  if (NumMembers() == 0 || NumMembers() == size_) return;
  const std::string story = cause_.empty() ? "a member came again" : cause_;
  Break(story + ", before all had joined", now);
}

int Generations::Count(State state) const {
  return static_cast<int>(std::count_if(workers_.begin(), workers_.end(),
                                        [state](const auto& one) { return one.second.state == state; }));
}

/// The number of members of the current generation that have not left it yet, as far as is known.
int Generations::NumMembers() const {
  return static_cast<int>(away_.size()) +
         static_cast<int>(std::count_if(workers_.begin(), workers_.end(),
                                        [this](const auto& one) { return IsMember(one.second); }));
}

/// Gives up members that do not leave a broken generation in time, so that the next one can begin. A member
/// that returns later is treated like any other worker.
void Generations::GiveUpMembers(TimePoint now) {
  if (!broken_ || now - incomplete_since_ < LeavePatience()) return;
  for (auto& [connection, worker] : workers_) {
    if (worker.state == State::kMember) worker.generation = 0;
  }
}

/// Gives up members that have not returned to this tracker in time. They are lost or, if the work is done,
/// have ended.
void Generations::GiveUpThoseAway(TimePoint now) {
  if (away_.empty() || now - taken_over_at_ < LeavePatience()) return;
  std::vector<std::string> names;
  for (const auto& [task_id, host] : std::exchange(away_, {})) {
    names.push_back(fmt::format("{} (host {})", wire::Printable(task_id), host));
  }
  if (!done_) {
    Break(fmt::format("task {} had not returned to the tracker that took over", ListSome(names)), now);
  }
  FinishWhenAllAreGone();
}

void Generations::Evaluate(TimePoint now) {
  GiveUpThoseAway(now);
  BreakIfMembersStay(now);
  GiveUpMembers(now);
  if (done_ || formed_ || NumMembers() > 0) return;
  const int waiting = Count(State::kWaits);
  const bool is_late = now - waiting_since_ >= Patience();
  if (waiting < options_.min_workers || (waiting < NumExpected() && !is_late)) return;
  Form();
}

/// Forms a generation of the waiting workers, or of the first max_workers of them.
void Generations::Form() {
  ++number_;
  size_ = 0;
  connections_.Write({.kind = Note::Kind::kGeneration, .rank = number_});
  for (auto& [connection, worker] : workers_) {
    if (worker.state != State::kWaits || size_ == options_.max_workers) continue;
    worker.state = State::kMember;
    worker.generation = number_;
    connections_.Write({.kind = Note::Kind::kEntered,
                        .rank = size_,
                        .task_id = worker.task_id,
                        .host = connections_.host(connection)});
    ++size_;
  }
  broken_ = changing_ = is_taken_up_ = false;
  first_left_at_.reset();
  formed_ = true;
}

void Generations::Announce(TimePoint now) {
  std::vector<std::string> tasks;
  for (const auto& [connection, worker] : workers_) {
    if (IsMember(worker)) {
      tasks.push_back(wire::Printable(worker.task_id));
    }
  }
  std::sort(tasks.begin(), tasks.end(), [](const std::string& a, const std::string& b) {
    return std::pair(a.size(), a) < std::pair(b.size(), b);  // numbers in numeric order
  });
  const double seconds = std::chrono::duration<double>(now - incomplete_since_).count();
  const std::string since = cause_.empty() ? "" : fmt::format(", {:.1f} s after {}", seconds, cause_);
  std::string text = fmt::format("generation {} begins with {} worker{} (task {}){}", number_, size_,
                                 size_ == 1 ? "" : "s", ListSome(tasks), since);
  connections_.Log(number_ == 1 ? Severity::kDebug : Severity::kInfo, text);
  connections_.Add(GenerationBegan{number_, size_, seconds, std::move(text)});
  cause_.clear();
  TellMembers(GenerationWord::kFormed);
  // Workers may have arrived after this generation was formed.
  if (Count(State::kWaits) > 0 && size_ < options_.max_workers) AskForChange();
}

/// Ends the job if the work is done and all members have ended.
void Generations::FinishWhenAllAreGone() {
  if (!done_ || NumMembers() > 0 || Count(State::kDone) > 0 || std::exchange(finished_, true)) {
    return;
  }
  end_ = "";
}

// --- time ------------------------------------------------------------------------------------------------

void Generations::Tick(TimePoint now) {
  if (finished_) return;
  Evaluate(now);
  if (formed_ || done_ || NumMembers() > 0 || options_.timeout.count() == 0) return;
  if (Count(State::kWaits) >= options_.min_workers) return;  // they begin after Patience()
  if (now < TimeLimit()) return;
  finished_ = true;
  end_ = DescribeTimeout(options_.timeout, Describe());
  for (const auto& [connection, worker] : workers_) Tell(connection, GenerationWord::kFailed, *end_);
}

std::optional<TimePoint> Generations::NextDeadline() const {
  if (finished_ || formed_) return std::nullopt;
  if (!away_.empty()) return taken_over_at_ + LeavePatience();
  if (done_) return std::nullopt;
  if (NumMembers() > 0) {
    if (broken_) return incomplete_since_ + LeavePatience();
    return first_left_at_ ? std::optional(*first_left_at_ + kLeaveTogether) : std::nullopt;
  }
  if (Count(State::kWaits) >= options_.min_workers) return waiting_since_ + Patience();
  if (options_.timeout.count() == 0) return std::nullopt;
  return TimeLimit();
}

std::string Generations::Describe() const {
  std::vector<std::string> names;
  for (const auto& [task_id, host] : away_) names.push_back(wire::Printable(task_id));
  if (!names.empty()) return fmt::format("expecting task {} of generation {} back", ListSome(names), number_);
  for (const auto& [connection, worker] : workers_) {
    if (worker.state == State::kWaits) names.push_back("task " + wire::Printable(worker.task_id));
  }
  return fmt::format("{} worker{} wait{} ({}), expected {}, and at least {}", names.size(),
                     names.size() == 1 ? "" : "s", names.size() == 1 ? "s" : "",
                     names.empty() ? "none" : ListSome(names), NumExpected(), options_.min_workers);
}

}  // namespace warren::tracker
