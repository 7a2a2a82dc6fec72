// What a tracker that takes a job over has to know of it, one change at a time, and how it is written down: a
// line of text a change.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace warren::tracker {

struct Note {
  enum class Kind {
    kWorld,       ///< the job has `rank` ranks
    kAssigned,    ///< `rank` was given to `task_id` at `host`, which makes its links now
    kUnassigned,  ///< `rank` is nobody's again
    kLinked,      ///< `rank` connected to `peers`
    kListens,     ///< `rank` listens at `port`; `peers` are still to connect to it
    kShutDown,    ///< `rank` has said shutdown
    kReturned,    ///< ... and takes part again
    kMember,      ///< `rank` was given to `task_id` at `host`, in the collective dialect: all are, from 0 on
    kBroken,      ///< ... and `rank` failed, so that all have to come again
    kClosed,      ///< the job is closed to all who do not prove its token, and begins here
    kVouched      ///< `task_id` at `host` was vouched for, with `ticket`
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

/// One line, without its end.
std::string Encode(const Note& note);
/// Throws std::invalid_argument that quotes what is no note.
Note DecodeNote(std::string_view line);

}  // namespace warren::tracker
