// Matches messages to receives as MPI does (MPI 4.1, section 3.5): among messages from one rank with one tag,
// the first one sent is matched with the first suitable receive. Messages with different tags are not
// ordered. Handles only ids of messages and receives, no links or buffers.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "rabit_engine/base/tagged_messages.h"

namespace warren {

class MessageMatching {
 public:
  static constexpr int kAnyRank = TaggedMessages::kAnyRank;
  /// Identifies a message or a receive; chosen by the caller.
  using Id = std::uint64_t;

  /// Adds a receive. Returns the matching message if it has already arrived.
  std::optional<Id> Post(Id receive, int from, std::uint64_t tag);
  /// Adds a message that has at least begun to arrive. Returns the matching receive if it has already been
  /// posted.
  std::optional<Id> Arrive(Id message, int from, std::uint64_t tag);
  /// Whether a posted receive might match a future message from this rank.
  bool AwaitsFrom(int rank) const;

 private:
  struct Waiting {
    std::uint64_t turn;
    Id id;
  };
  using Queue = std::deque<Waiting>;
  using Place = std::pair<std::uint64_t, int>;  ///< tag and sender

  std::optional<Id> Take(std::map<Place, Queue>& queues, const Place& place);

  std::uint64_t turns_ = 0;
  std::map<Place, Queue> receives_;  ///< receives from any rank have kAnyRank as the sender
  std::map<Place, Queue> messages_;
  std::map<int, int> num_receives_;  ///< number of receives in receives_, by sender
};

}  // namespace warren
