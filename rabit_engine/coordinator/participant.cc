#include "rabit_engine/coordinator/participant.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <utility>

namespace warren::coordinator {
namespace {

// Flags in the first word, which are combined over all ranks by bitwise AND, like all words.
constexpr std::uint64_t kHasNothingToTell = 1;
constexpr std::uint64_t kIsIdle = 2;

constexpr std::size_t kBits = 64;

}  // namespace

Participant::Participant(int rank, Settings settings, std::size_t capacity)
    : rank_(rank), settings_(settings), capacity_(capacity) {}

void Participant::Add(Request request, double now) {
  std::string name = request.name;
  WaitingRequest& waiting =
      waiting_.emplace(std::move(name), WaitingRequest{std::move(request), now, ++num_added_, false, {}})
          .first->second;
  ++num_untold_;
  TakeBit(waiting);
}

/// Gives the operation the bit of its name if the cache contains the operation exactly as this rank has
/// submitted it.
void Participant::TakeBit(WaitingRequest& waiting) {
  const Request& wanted = waiting.request;
  const auto place = places_.find(wanted.name);
  if (place == places_.end()) return;
  const Known& known = *known_[place->second];
  if (known.request->signature != wanted.signature || known.request->group != wanted.group ||
      known.request->group_size != wanted.group_size || known.own_priority != wanted.priority ||
      known.own_sent != wanted.sent || known.own_received != wanted.received)
    return;
  waiting.bit = place->second;
  own_bits_[place->second / kBits] |= std::uint64_t{1} << place->second % kBits;
  --num_untold_;
}

void Participant::LoseBit(WaitingRequest& waiting) {
  if (!waiting.bit) return;
  own_bits_[*waiting.bit / kBits] &= ~(std::uint64_t{1} << *waiting.bit % kBits);
  waiting.bit.reset();
  ++num_untold_;
}

/// Drops the bits of operations that have waited too long, so that they are reported to rank 0, which warns
/// of the missing ranks.
void Participant::AskAgain(double now) {
  if (now < next_look_) return;
  next_look_ = now + settings_.patience / 4;
  for (auto& [name, waiting] : waiting_) {
    if (now - waiting.since >= settings_.patience) LoseBit(waiting);
  }
}

std::vector<std::uint64_t> Participant::Words(double now, bool has_news) {
  AskAgain(now);
  const bool tells = has_news || num_untold_ > 0 || TellsJoin() || leaves_ == Said::kNew;
  const bool idle = waiting_.empty() && !tells;
  std::vector<std::uint64_t> words{(tells ? 0 : kHasNothingToTell) | (idle ? kIsIdle : 0)};
  words.insert(words.end(), own_bits_.begin(), own_bits_.end());
  if (has_joined_) {
    for (std::size_t bit = 0; bit < known_.size(); ++bit) {
      if (known_[bit]) words[1 + bit / kBits] |= std::uint64_t{1} << bit % kBits;
    }
  }
  return words;
}

bool Participant::Agree(std::span<const std::uint64_t> all) {
  all_are_idle_ = (all[0] & kIsIdle) != 0;
  std::vector<std::size_t> bits;
  std::unordered_map<std::string_view, std::size_t> of_group;
  for (std::size_t word = 1; word < all.size(); ++word) {
    for (std::uint64_t left = all[word]; left != 0; left &= left - 1) {
      const std::size_t bit = (word - 1) * kBits + static_cast<std::size_t>(std::countr_zero(left));
      bits.push_back(bit);
      const Request& request = *known_[bit]->request;
      if (!request.group.empty()) ++of_group[request.group];
    }
  }
  for (const std::size_t bit : bits) {
    Known& known = *known_[bit];
    const Request& request = *known.request;
    if (!request.group.empty() && of_group[request.group] < request.group_size) continue;
    const auto waiting = waiting_.find(request.name);
    if (waiting != waiting_.end()) {  // a rank that has joined need not have submitted the name
      LoseBit(waiting->second);
      --num_untold_;
      waiting_.erase(waiting);
    }
    uses_.splice(uses_.end(), uses_, known.use);
    ready_.Add({known.request, {}});
  }
  return (all[0] & kHasNothingToTell) == 0;
}

RankReport Participant::TakeReport(double now) {
  RankReport message;
  message.joins = TellsJoin();
  std::vector<WaitingRequest*> untold;
  for (auto& [name, waiting] : waiting_) {
    if (!waiting.told && !waiting.bit) untold.push_back(&waiting);
  }
  std::sort(untold.begin(), untold.end(),
            [](const WaitingRequest* one, const WaitingRequest* two) { return one->number < two->number; });
  for (WaitingRequest* const waiting : untold) {
    message.requests.push_back({waiting->request, now - waiting->since});
    waiting->told = true;
    --num_untold_;
  }
  if (message.joins) joins_ = Said::kTold;
  message.leaves = leaves_ == Said::kNew;
  if (message.leaves) leaves_ = Said::kTold;
  return message;
}

void Participant::Accept(const Answer& answer) {
  settings_ = answer.settings;
  for (const std::string& name : answer.forgotten) Forget(name);
  if (!answer.joined.empty()) {
    has_joined_ =
        has_joined_ || std::find(answer.joined.begin(), answer.joined.end(), rank_) != answer.joined.end();
    // Joined ranks cannot take part in these operations. Their names are forgotten, so that they are reported
    // to rank 0, which ends them with an error.
    for (std::size_t bit = 0; bit < known_.size(); ++bit) {
      if (known_[bit] && !known_[bit]->request->signature.takes_joined())
        Forget(std::string(known_[bit]->request->name));
    }
  }
  for (const Agreed& agreed : answer.agreed) {
    auto request = std::make_shared<const Request>(agreed.request);
    Request own = *request;
    const auto waiting = waiting_.find(request->name);
    if (waiting != waiting_.end()) {
      LoseBit(waiting->second);
      if (!waiting->second.told) --num_untold_;
      own = std::move(waiting->second.request);
      waiting_.erase(waiting);
    }
    if (agreed.error.empty()) Remember(request, own);
    ready_.Add({std::move(request), agreed.error});
  }
  if (answer.last_joined >= 0) {
    if (has_joined_) last_joined_ = answer.last_joined;
    has_joined_ = false;
    joins_ = Said::kNothing;
  }
  if (left_ < 0) left_ = answer.left;
}

std::vector<std::string> Participant::KnownBeside(const Request& request) const {
  std::vector<std::string> names;
  if (Knows(request.name)) names.push_back(request.name);
  const auto group = known_of_group_.find(request.group);
  if (group != known_of_group_.end()) names.push_back(known_[group->second.front()]->request->name);
  return names;
}

std::optional<int> Participant::TakeLastJoined() {
  if (!ready_.empty()) return std::nullopt;
  return std::exchange(last_joined_, std::nullopt);
}

void Participant::Remember(const std::shared_ptr<const Request>& request, const Request& own) {
  if (capacity_ == 0 || request->group_size > capacity_) return;
  Forget(request->name);
  // If the group's name is used again with other members, only one set of members can have bits.
  const auto group = known_of_group_.find(request->group);
  if (group != known_of_group_.end() && group->second.size() >= request->group_size)
    ForgetGroup(request->group);
  if (places_.size() >= capacity_) Forget(std::string(known_[uses_.front()]->request->name));
  std::size_t bit = known_.size();
  if (free_bits_.empty()) {
    known_.emplace_back();
    own_bits_.resize((known_.size() + kBits - 1) / kBits);
  } else {
    bit = free_bits_.back();
    free_bits_.pop_back();
  }
  known_[bit] = Known{request, own.priority, own.sent, own.received, uses_.insert(uses_.end(), bit)};
  places_[request->name] = bit;
  if (!request->group.empty()) known_of_group_[request->group].push_back(bit);
}

/// Forgets the name together with its whole group: a group can be agreed on by bits only if all its names
/// have bits.
void Participant::Forget(const std::string& name) {
  const auto place = places_.find(name);
  if (place == places_.end()) return;
  const std::size_t bit = place->second;
  const std::string group = known_[bit]->request->group;
  return group.empty() ? ForgetOne(bit) : ForgetGroup(group);
}

void Participant::ForgetGroup(const std::string& group) {
  const auto place = known_of_group_.find(group);
  const std::vector<std::size_t> bits = std::move(place->second);
  known_of_group_.erase(place);
  for (const std::size_t bit : bits) ForgetOne(bit);
}

void Participant::ForgetOne(std::size_t bit) {
  const std::string& name = known_[bit]->request->name;
  const auto waiting = waiting_.find(name);
  if (waiting != waiting_.end()) LoseBit(waiting->second);
  places_.erase(name);
  uses_.erase(known_[bit]->use);
  known_[bit].reset();
  free_bits_.push_back(bit);
}

}  // namespace warren::coordinator
