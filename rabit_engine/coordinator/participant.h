// One rank's part in the cycles of named operations: its ready operations, the cache of names that all ranks
// know, and the agreed operations. Uses no clock and does no communication. The caches of all ranks are equal
// after every cycle, because they result from the same agreements in the same order.
//
// A cycle: words = Words(); words = bitwise AND over all ranks; if (Agree(words)) Accept(rank 0's answer to
// the TakeReport() of all ranks).
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
  /// `capacity`: the maximum number of names with a bit in Words(); must be the same on all ranks. When all
  /// bits are taken, the least recently used name loses its bit.
  Participant(int rank, Settings settings, std::size_t capacity);

  /// Adds an operation that is ready on this rank. Its name must not be waiting already (see IsWaiting).
  /// Times, here and below, are seconds on any clock of this rank.
  void Add(Request request, double now);
  bool IsWaiting(const std::string& name) const { return waiting_.contains(name); }
  /// From this call on, this rank submits no more operations. Once none of its operations is waiting, it
  /// contributes neutral elements until all ranks have joined.
  void Join() { joins_ = Said::kNew; }
  /// Closes the coordinator for all ranks.
  void Leave() { leaves_ = Said::kNew; }
  bool joins() const { return joins_ != Said::kNothing; }

  /// Returns the words to combine over all ranks by bitwise AND. `has_news`: rank 0 needs the reports of all
  /// ranks.
  std::vector<std::uint64_t> Words(double now, bool has_news = false);
  /// Moves the operations that are ready everywhere, according to the combined words `all`, to ready().
  /// Returns whether all ranks must send reports to rank 0.
  bool Agree(std::span<const std::uint64_t> all);
  /// Whether no rank had anything to do in the last cycle.
  bool all_are_idle() const { return all_are_idle_; }
  RankReport TakeReport(double now);
  void Accept(const Answer& answer);

  ReadyList& ready() { return ready_; }
  const ReadyList& ready() const { return ready_; }
  const Settings& settings() const { return settings_; }
  bool Knows(const std::string& name) const { return places_.contains(name); }
  /// Returns the names that all ranks know and that must be forgotten when a rank requests `request`, which
  /// has no bit: the same name, if it is cached, and one name of the request's group, with which the whole
  /// group is forgotten.
  std::vector<std::string> KnownBeside(const Request& request) const;
  /// Returns the rank (in the job) that joined last, once, after all ranks have joined and all operations
  /// agreed on before have been run; otherwise nullopt.
  std::optional<int> TakeLastJoined();
  /// The rank, in the job, that has called Leave; -1 if none has.
  int left() const { return left_; }

 private:
  enum class Said { kNothing, kNew, kTold };
  struct WaitingRequest {
    Request request;
    double since = 0;
    std::uint64_t number = 0;        ///< submission order
    bool told = false;               ///< the request has been reported to rank 0
    std::optional<std::size_t> bit;  ///< the name's bit in the words, if it has one
  };
  struct Known {
    std::shared_ptr<const Request> request;
    // The values that this rank submitted; they may differ between ranks.
    std::int32_t own_priority = 0;
    std::vector<std::uint64_t> own_sent;
    std::vector<std::uint64_t> own_received;
    std::list<std::size_t>::iterator use;
  };

  bool TellsJoin() const { return joins_ == Said::kNew && waiting_.empty(); }
  void TakeBit(WaitingRequest& waiting);
  void LoseBit(WaitingRequest& waiting);
  void Remember(const std::shared_ptr<const Request>& request, const Request& own);
  void Forget(const std::string& name);
  void ForgetGroup(const std::string& group);
  void ForgetOne(std::size_t bit);
  void AskAgain(double now);

  int rank_;
  Settings settings_;
  std::size_t capacity_;
  std::unordered_map<std::string, WaitingRequest> waiting_;
  /// The number of entries of waiting_ that have no bit and have not been reported to rank 0.
  std::size_t num_untold_ = 0;
  double next_look_ = 0;
  std::vector<std::uint64_t> own_bits_;
  std::vector<std::optional<Known>> known_;  ///< by bit
  std::vector<std::size_t> free_bits_;
  std::unordered_map<std::string, std::size_t> places_;                       ///< bits by name
  std::unordered_map<std::string, std::vector<std::size_t>> known_of_group_;  ///< bits by group
  std::list<std::size_t> uses_;  ///< bits, least recently used first
  std::uint64_t num_added_ = 0;
  Said joins_ = Said::kNothing;
  Said leaves_ = Said::kNothing;
  bool has_joined_ = false;  ///< this rank has joined, and rank 0 has announced it to all ranks
  std::optional<int> last_joined_;
  int left_ = -1;
  bool all_are_idle_ = true;
  ReadyList ready_;
};

}  // namespace warren::coordinator
