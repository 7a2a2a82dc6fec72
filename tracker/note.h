// The part of a job's state that another tracker needs to take the job over: a list of changes. In the state
// file, each change is a line of text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace warren::tracker {

struct Note {
  enum class Kind {
    kWorld,       ///< the job has `rank` ranks
    kAssigned,    ///< `rank` was given to `task_id` at `host`, and is being linked
    kUnassigned,  ///< `rank` is free again
    kLinked,      ///< `rank` connected to `peers`
    kListens,     ///< `rank` listens at `port`; `peers` must still connect to it
    kShutDown,    ///< `rank` has announced its shutdown
    kReturned,    ///< the shutdown of `rank` no longer counts
    /// Collective dialect: `rank` was given to `task_id` at `host`; written for all ranks, in order.
    kMember,
    kBroken,   ///< collective dialect: `rank` failed, so all workers must join again
    kClosed,   ///< from now on, peers without token and ticket are refused; the job starts over
    kVouched,  ///< `task_id` at `host` was vouched for, with `ticket`
    // Only in elastic jobs:
    kGeneration,  ///< generation `rank` is formed of the tasks in the kEntered notes that follow
    kEntered,     ///< `task_id` at `host` is a member of the generation; `rank` counts the members
    kEnded,       ///< generation `rank` has lost a member
    kDone,        ///< a worker of generation `rank` has reported that the job's work is done
    kResumed      ///< a worker of generation `rank` has resumed the work after kDone
  };
  Kind kind = Kind::kWorld;
  int rank = 0;
  int port = 0;
  std::vector<int> peers = {};
  std::string task_id = {};
  std::string host = {};
  std::string ticket = {};

  friend bool operator==(const Note&, const Note&) = default;
};

/// Returns one line, without its newline.
std::string Encode(const Note& note);
/// Throws std::invalid_argument, whose message quotes the line, if the line is malformed.
Note DecodeNote(std::string_view line);
/// Throws std::invalid_argument, whose message quotes the note, unless it is `possible` at this point.
void RequirePossible(const Note& note, bool possible);

}  // namespace warren::tracker
