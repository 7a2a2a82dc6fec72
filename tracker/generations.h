// The generations of an elastic job (wire/membership.h): which workers train together, and when that changes.
// A state machine without I/O.
//
// A worker waits for a generation, or is a member of the current one. A generation ends when one of its
// members is lost, or when all have left it because another worker waits. The next one is formed of the
// workers that wait: at once when all that can come have come, and otherwise when those missing have had
// `replace_within`, provided that there are `min_workers`.
//
//                 kCome                 formed
//   (connects) ----------> kWaits ------------------> kMember
//                             ^                          |
//                             +--------- kCome ----------+    after kBroken or kChange, or both
//
// A member that has said that the work is done (kDone) may come again as long as it is connected: its program
// has more work, and so have the others, which run the same program.
//
// A tracker that takes the job over (TakeOver) knows the current generation from the notes of the one before.
// Its members are away until they have connected again, and are lost if they do not in time.
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
  /// How long a generation waits for workers that may come once there are `min_workers`.
  std::chrono::milliseconds replace_within{std::chrono::seconds{30}};
  /// How long fewer than `min_workers` may be there; zero: forever.
  std::chrono::milliseconds timeout{0};
};

/// How long at least the next generation waits for the members of a broken one: they notice the loss in their
/// next collective call, until which they may compute for long.
inline constexpr std::chrono::milliseconds kLeavePatience{std::chrono::seconds{30}};

class Generations {
 public:
  Generations(ConnectionTable& connections, const ElasticOptions& options, bool takes_notes, TimePoint now);

  /// Takes the job over from the tracker that wrote these notes, among others. Throws std::invalid_argument
  /// if they are invalid.
  void TakeOver(const std::vector<Note>& notes, TimePoint now);

  /// Adds a connection for a membership. It may stay silent.
  void Open(ConnectionId connection);
  bool Has(ConnectionId connection) const { return workers_.contains(connection); }
  /// Handles bytes after the magic number.
  void Received(ConnectionId connection, std::string_view bytes, TimePoint now);
  void Closed(ConnectionId connection, std::string_view why, TimePoint now);
  /// Ends a connection whose peer misbehaves.
  void Drop(ConnectionId connection, const std::string& reason, TimePoint now);

  /// The number of workers that run or are about to start, as a launcher knows it. A generation does not wait
  /// for more. Until a launcher says it, the first generation waits for max_workers, and each later one for
  /// as many as the one before had.
  void Expect(int num_workers, TimePoint now);
  /// A launcher has seen that this task failed.
  void TaskFailed(const std::string& task_id, const std::string& how, TimePoint now);
  /// The members of the current generation have lost one of them. Does nothing if that is known already.
  void Break(const std::string& story, TimePoint now);
  /// The same if one of them has left it, which the others do not know.
  void BreakIfOneHasLeft(TimePoint now);
  void Tick(TimePoint now);
  std::optional<TimePoint> NextDeadline() const;

  /// Whether a new generation has been formed since the last call. The caller prepares for its members, and
  /// then calls Announce, which tells them.
  bool TakeFormed() { return std::exchange(formed_, false); }
  void Announce(TimePoint now);

  /// The number of the current or last generation; 0 before the first.
  int number() const { return number_; }
  int size() const { return size_; }  ///< the number of its members when it was formed
  /// Whether the current generation has lost a member.
  bool broken() const { return broken_; }
  /// Whether members have not connected yet to this tracker, which has taken the job over.
  bool awaits_return() const { return !away_.empty(); }
  /// Whether a worker has said that the job's work is done.
  bool done() const { return done_; }
  /// Whether all workers have ended since then, or too few came in time.
  bool finished() const { return finished_; }
  bool failed() const { return finished_ && !done_; }
  /// Once it is finished, why the job failed, or "" if it did not; nullopt in other calls.
  std::optional<std::string> TakeEnd() { return std::exchange(end_, std::nullopt); }
  /// "2 workers wait (task 0, task 3), expected 3"
  std::string Describe() const;

 private:
  enum class State {
    kSilent,  ///< has not said anything yet
    kWaits,
    kMember,
    kDone
  };
  struct Worker {
    State state = State::kSilent;
    std::string task_id;
    int generation = 0;  ///< the one that it is a member of; 0 if it was given up
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
  int Count(State state) const;
  int NumMembers() const;
  std::chrono::milliseconds LeavePatience() const {
    return std::max(options_.replace_within, kLeavePatience);
  }
  /// How long a generation waits for workers that may come. All start together, so the first one waits for
  /// all.
  std::chrono::milliseconds Patience() const {
    return number_ == 0 ? LeavePatience() : options_.replace_within;
  }
  int NumExpected() const { return expected_.value_or(number_ == 0 ? options_.max_workers : size_); }
  void GiveUpMembers(TimePoint now);
  void GiveUpThoseAway(TimePoint now);
  void Write(Note note);
  void Evaluate(TimePoint now);
  void Form();
  void FinishWhenAllAreGone();

  ConnectionTable& connections_;
  ElasticOptions options_;
  std::optional<int> expected_;  ///< as a launcher has said
  bool takes_notes_;
  std::map<ConnectionId, Worker> workers_;  ///< in the order in which they connected
  int number_ = 0;
  int size_ = 0;
  bool broken_ = false;    ///< the current generation has lost a member
  bool changing_ = false;  ///< its members have been told that another worker waits
  bool formed_ = false;
  bool done_ = false;
  bool is_taken_up_ = false;  ///< a worker that had said that the work is done has come again
  bool finished_ = false;
  std::optional<std::string> end_;
  std::string cause_;                        ///< why the current generation ends, or the last one has ended
  TimePoint incomplete_since_;               ///< when the job began, or the last generation began to end
  TimePoint waiting_since_;                  ///< when the first of the workers that wait came
  std::map<std::string, std::string> away_;  ///< members that have not returned, by task id; their hosts
  TimePoint taken_over_at_;
};

}  // namespace warren::tracker
