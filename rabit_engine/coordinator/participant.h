// One rank's part in the cycles of named operations: what it has ready, the names that all ranks know, and
// what was agreed. Values in, values out: no clock, no other rank. The caches of all ranks are equal after
// every cycle, since each follows from the same agreements in the same order.
//
// A cycle:  words = Words();  words = bitwise and over all ranks;  if (Agree(words)) Accept(answer of rank 0
// to the TakeMessage() of all).
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rabit_engine/coordinator/ready_list.h"
#include "rabit_engine/coordinator/request.h"

namespace warren::coordinator {

class Participant {
 public:
  /// `capacity`: so many names have bits, on all ranks alike; those that were not used for longest lose
  /// theirs.
  Participant(int rank, Settings settings, std::size_t capacity);

  /// Times are seconds of any clock of this rank's. The name must not be one that IsWaiting.
  void Add(Request request, double now);
  bool IsWaiting(const std::string& name) const { return waiting_.contains(name); }
  /// This rank has no more: once nothing of it is waiting, it takes part with elements that change nothing,
  /// until all have joined.
  void Join() { joins_ = Said::kNew; }
  /// Ends it for all.
  void Leave() { leaves_ = Said::kNew; }
  bool joins() const { return joins_ != Said::kNothing; }

  /// `has_news`: rank 0 has something to tell.
  std::vector<std::uint64_t> Words(double now, bool has_news = false);
  /// Takes what is ready everywhere. True when all have to send messages.
  bool Agree(std::span<const std::uint64_t> all);
  /// Whether no rank had anything to do in the last cycle.
  bool all_are_idle() const { return all_are_idle_; }
  Message TakeMessage(double now);
  void Accept(const Answer& answer);

  ReadyList& ready() { return ready_; }
  const ReadyList& ready() const { return ready_; }
  const Settings& settings() const { return settings_; }
  bool Knows(const std::string& name) const { return places_.contains(name); }
  /// Names that all know and that have to be forgotten when somebody asks for this, which has no bit: the
  /// same, in another shape, and one of its group.
  std::vector<std::string> KnownBeside(const Request& request) const;
  /// After all have joined, who was the last, once: when everything is through that was agreed on before.
  std::optional<int> TakeLastJoined();
  /// Who has left, or -1.
  int left() const { return left_; }

 private:
  enum class Said { kNothing, kNew, kTold };
  struct Waiting {
    Request request;
    double since = 0;
    std::uint64_t number = 0;        ///< in the order in which they were given
    bool told = false;               ///< rank 0 has it
    std::optional<std::size_t> bit;  ///< it has one
  };
  struct Known {
    std::shared_ptr<const Request> request;
    // What this rank gave, where ranks may differ.
    std::int32_t own_priority = 0;
    std::vector<std::uint64_t> own_sent;
    std::vector<std::uint64_t> own_received;
    std::list<std::size_t>::iterator use;
  };

  bool TellsJoin() const { return joins_ == Said::kNew && waiting_.empty(); }
  void TakeBit(Waiting& waiting);
  void LoseBit(Waiting& waiting);
  void Remember(const std::shared_ptr<const Request>& request, const Request& own);
  void Forget(const std::string& name);
  void ForgetGroup(const std::string& group);
  void ForgetOne(std::size_t bit);
  void AskAgain(double now);

  int rank_;
  Settings settings_;
  std::size_t capacity_;
  std::unordered_map<std::string, Waiting> waiting_;
  std::size_t num_untold_ = 0;  ///< of waiting_, neither told nor with a bit
  double next_look_ = 0;
  std::vector<std::uint64_t> own_bits_;
  std::vector<std::optional<Known>> known_;  ///< by bit
  std::vector<std::size_t> free_bits_;
  std::unordered_map<std::string, std::size_t> places_;                       ///< bits by name
  std::unordered_map<std::string, std::vector<std::size_t>> known_of_group_;  ///< bits by group
  std::list<std::size_t> uses_;  ///< bits, the one that was not used for longest first
  std::uint64_t num_added_ = 0;
  Said joins_ = Said::kNothing;
  Said leaves_ = Said::kNothing;
  bool has_joined_ = false;  ///< and all know
  bool others_have_joined_ = false;
  std::optional<int> last_joined_;
  int left_ = -1;
  bool all_are_idle_ = true;
  ReadyList ready_;
};

}  // namespace warren::coordinator
