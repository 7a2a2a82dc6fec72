// Which message is for which receive, as MPI has it (MPI 4.1, section 3.5): of messages from one rank with
// one tag the first that was sent is for the first receive that wants it; tags keep no order among each
// other. Values only: no links, no memory.
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
  /// Of a message or a receive: the caller's.
  using Id = std::uint64_t;

  /// A receive is wanted. Returns the message that is for it, where that had arrived.
  std::optional<Id> Post(Id receive, int from, std::uint64_t tag);
  /// A message has arrived, or its beginning has. Returns the receive that it is for, where that was wanted.
  std::optional<Id> Arrive(Id message, int from, std::uint64_t tag);
  /// Whether a message of this rank that is still to come might be for a receive that is wanted.
  bool AwaitsFrom(int rank) const;

 private:
  struct Waiting {
    std::uint64_t turn;
    Id id;
  };
  using Queue = std::deque<Waiting>;
  using Place = std::pair<std::uint64_t, int>;  ///< tag and rank

  std::optional<Id> Take(std::map<Place, Queue>& queues, const Place& place);

  std::uint64_t turns_ = 0;
  std::map<Place, Queue> receives_;  ///< kAnyRank is a rank of its own
  std::map<Place, Queue> messages_;
  std::map<int, int> num_receives_;  ///< by rank
};

}  // namespace warren
