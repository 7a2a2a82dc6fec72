// The generations of an elastic job (wire/membership.h): which workers train together, and when that changes.
// A state machine without I/O.
//
// A worker either waits for a generation or is a member of the current one. A generation ends when one of its
// members is lost, or when all members have left it, for example because another worker is waiting or one of
// them was asked to end. The next generation then consists of the waiting workers. It is formed as soon as
// all expected workers are waiting, or after `replace_within` (at least kLeavePatience for the first
// generation) if at least `min_workers` are waiting.
//
//                 kCome                 formed
//   (connects) ----------> kWaits ------------------> kMember
//                             ^                          |
//                             +--------- kCome ----------+    after kBroken or kChange, or both
//
// A member that has reported that the work is done (kDone) may still send kCome: its program has more work,
// and so have the programs of the other members, which are the same.
//
// A tracker that takes over the job (TakeOver) restores the current generation from the previous tracker's
// notes. Its members count as away until they reconnect, and as lost if they do not do so in time.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tracker/connection_table.h"
#include "tracker/note.h"
#include "wire/membership.h"

namespace warren::tracker {

struct ElasticOptions {
  int min_workers = 1;
  int max_workers = 1;
  /// The time that the next generation waits for missing workers after the first waiting worker has arrived,
  /// if `min_workers` are waiting.
  std::chrono::milliseconds replace_within{std::chrono::seconds{30}};
  /// The time limit for enough workers to arrive for the next generation; zero: none.
  std::chrono::milliseconds timeout{0};
};

/// The minimum time that the next generation waits for the members of a broken one. They notice the loss only
/// in their next collective call, and may compute for a long time before it.
inline constexpr std::chrono::milliseconds kLeavePatience{std::chrono::seconds{30}};

/// The time within which all members of an unbroken generation must leave it after the first of them has
/// left. A member that takes longer may be lost without its connection having been closed, for example
/// because its host has lost its network.
inline constexpr std::chrono::seconds kLeaveTogether{5};

class Generations {
 public:
  Generations(ConnectionTable& connections, const ElasticOptions& options, TimePoint now);

  /// Takes the job over from the tracker that wrote these notes; notes about other parts of the job are
  /// ignored. Throws std::invalid_argument if the notes about generations are invalid.
  void TakeOver(const std::vector<Note>& notes, TimePoint now);

  /// Adds a connection for a membership. The peer may stay silent for any length of time.
  void Open(ConnectionId connection);
  bool Has(ConnectionId connection) const { return workers_.contains(connection); }
  /// Handles bytes after the magic number.
  void Received(ConnectionId connection, std::string_view bytes, TimePoint now);
  void Closed(ConnectionId connection, std::string_view why, TimePoint now);
  /// Ends a connection whose peer misbehaves.
  void Drop(ConnectionId connection, const std::string& reason, TimePoint now);

  /// Sets the number of workers that are running or about to start, according to a launcher. The next
  /// generation does not wait for more. Until the first call, the first generation waits for max_workers, and
  /// each later generation for the size of the previous one.
  void Expect(int num_workers, TimePoint now);
  /// Restarts the time limit for missing workers.
  void WaitAnew(TimePoint now) { limited_from_ = now; }
  /// Called when a launcher reports that this task has failed.
  void TaskFailed(const std::string& task_id, const std::string& how, TimePoint now);
  /// Records that the current generation has lost a member, and tells the other members. Does nothing if
  /// there is no generation, it is already broken, or the work is done.
  void Break(const std::string& story, TimePoint now);
  /// Calls Break if some members, but not all, have left the current generation.
  void BreakIfOneHasLeft(TimePoint now);
  void Tick(TimePoint now);
  std::optional<TimePoint> NextDeadline() const;

  /// Whether a new generation has been formed since the last call. The caller prepares for its members and
  /// then calls Announce, which notifies them.
  bool TakeFormed() { return std::exchange(formed_, false); }
  void Announce(TimePoint now);

  /// The number of the current or last generation; 0 before the first.
  int number() const { return number_; }
  int size() const { return size_; }  ///< the number of that generation's members when it was formed
  /// Whether the current generation has lost a member.
  bool broken() const { return broken_; }
  /// Whether this tracker has taken over the job and some members have not reconnected yet.
  bool awaits_return() const { return !away_.empty(); }
  /// Whether a worker has reported that the job's work is done.
  bool done() const { return done_; }
  /// Whether the job is over: all members have ended after the work was done, or too few workers arrived in
  /// time.
  bool finished() const { return finished_; }
  bool failed() const { return finished_ && !done_; }
  /// Once the job is finished, returns why it failed, or "" if it succeeded. Returns std::nullopt before that
  /// and in later calls.
  std::optional<std::string> TakeEnd() { return std::exchange(end_, std::nullopt); }
  /// Describes the workers that the job waits for: "2 workers wait (task 0, task 3), expected 3, and at least
  /// 1", or which members have not returned.
  std::string Describe() const;

 private:
  enum class State {
    kSilent,  ///< has not sent a message yet
    kWaits,
    kMember,
    kDone
  };
  struct Worker {
    State state = State::kSilent;
    std::string task_id;
    /// The generation that the worker was last a member of; 0 if none, or if the worker was given up.
    int generation = 0;
    wire::Reader reader;
  };

  void Handle(ConnectionId connection, const wire::MemberMessage& message, TimePoint now);
  void Introduce(ConnectionId connection, const wire::MemberMessage& message, TimePoint now);
  void Return(ConnectionId connection, wire::MemberWord word, int generation);
  void Come(ConnectionId connection, TimePoint now);
  void Done(ConnectionId connection);
  void AskForChange();
  void RemoveOthersOf(const std::string& task_id, ConnectionId connection, TimePoint now);
  bool ReplaceOtherOf(const std::string& task_id, ConnectionId connection);
  void Remove(ConnectionId connection, const std::string& why, TimePoint now);
  void Tell(ConnectionId connection, wire::GenerationWord word, const std::string& story = {});
  void TellMembers(wire::GenerationWord word, const std::string& story = {});
  /// Whether the worker is a member of the current generation.
  bool IsMember(const Worker& worker) const {
    return worker.state == State::kMember && worker.generation == number_;
  }
  int Count(State state) const;
  int NumMembers() const;
  std::chrono::milliseconds LeavePatience() const {
    return std::max(options_.replace_within, kLeavePatience);
  }
  /// The time that the next generation waits for missing workers. The first one may wait longer, since all
  /// workers are starting.
  std::chrono::milliseconds Patience() const {
    return number_ == 0 ? LeavePatience() : options_.replace_within;
  }
  TimePoint TimeLimit() const { return std::max(incomplete_since_, limited_from_) + options_.timeout; }
  int NumExpected() const { return expected_.value_or(number_ == 0 ? options_.max_workers : size_); }
  void NoteIfAMemberLeaves(const Worker& worker, TimePoint now);
  void BreakIfMembersStay(TimePoint now);
  void GiveUpMembers(TimePoint now);
  void GiveUpThoseAway(TimePoint now);
  void Evaluate(TimePoint now);
  void Form();
  void FinishWhenAllAreGone();

  ConnectionTable& connections_;
  ElasticOptions options_;
  std::optional<int> expected_;             ///< set by Expect
  std::map<ConnectionId, Worker> workers_;  ///< in the order in which they connected
  int number_ = 0;
  int size_ = 0;
  bool broken_ = false;    ///< the current generation has lost a member
  bool changing_ = false;  ///< the members have been told that another worker is waiting
  bool formed_ = false;
  /// When the first member left the current generation; nullopt if the generation is broken or none has left.
  std::optional<TimePoint> first_left_at_;
  bool done_ = false;
  bool is_taken_up_ = false;  ///< a worker has resumed the work after reporting that it was done
  bool finished_ = false;
  std::optional<std::string> end_;
  std::string cause_;  ///< why the current generation ends, or the last one has ended
  /// When the current or last generation broke or, without a break, when the first of the waiting workers
  /// arrived; before that, when the job began or was taken over.
  TimePoint incomplete_since_;
  TimePoint limited_from_;   ///< the last call of WaitAnew, or when a worker last left the job
  TimePoint waiting_since_;  ///< when the first of the waiting workers arrived
  std::map<std::string, std::string> away_;  ///< hosts of the members that have not returned, by task id
  TimePoint taken_over_at_;
};

}  // namespace warren::tracker
