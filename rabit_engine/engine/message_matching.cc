#include "rabit_engine/engine/message_matching.h"

#include <limits>

namespace warren {

std::optional<MessageMatching::Id> MessageMatching::Take(std::map<Place, Queue>& queues, const Place& place) {
  const auto found = queues.find(place);
  if (found == queues.end()) return std::nullopt;
  const Id id = found->second.front().id;
  found->second.pop_front();
  if (found->second.empty()) queues.erase(found);
  return id;
}

std::optional<MessageMatching::Id> MessageMatching::Post(Id receive, int from, std::uint64_t tag) {
  Place place{tag, from};
  if (from == kAnyRank) {  // take the message that arrived first, from any rank
    std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
    for (auto one = messages_.lower_bound({tag, kAnyRank}); one != messages_.end() && one->first.first == tag;
         ++one) {
      if (one->second.front().turn >= first) continue;
      first = one->second.front().turn;
      place = one->first;
    }
  }
  if (const auto message = Take(messages_, place)) return message;
  receives_[{tag, from}].push_back({turns_++, receive});
  ++num_receives_[from];
  return std::nullopt;
}

std::optional<MessageMatching::Id> MessageMatching::Arrive(Id message, int from, std::uint64_t tag) {
  const auto of_rank = receives_.find({tag, from});
  const auto of_any = receives_.find({tag, kAnyRank});
  const bool is_any =
      of_any != receives_.end() &&
      (of_rank == receives_.end() || of_any->second.front().turn < of_rank->second.front().turn);
  const int rank = is_any ? kAnyRank : from;
  if (const auto receive = Take(receives_, {tag, rank})) {
    if (--num_receives_[rank] == 0) num_receives_.erase(rank);
    return receive;
  }
  messages_[{tag, from}].push_back({turns_++, message});
  return std::nullopt;
}

bool MessageMatching::AwaitsFrom(int rank) const {
  return num_receives_.contains(rank) || num_receives_.contains(kAnyRank);
}

}  // namespace warren
