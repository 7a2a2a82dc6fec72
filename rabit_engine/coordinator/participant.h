// One rank's part in the cycles of named operations: its waiting operations, the cache of names, and the
// agreed operations. Uses no clock and does no communication. The caches of all ranks are equal after every
// cycle, because they result from the same answers in the same order.
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
#include <unordered_map>
#include <vector>

#include "rabit_engine/coordinator/ready_list.h"
#include "rabit_engine/coordinator/request.h"

namespace warren::coordinator {

class Participant {
 public:
  /// `capacity`: the maximum number of cached names, each of which has a bit in Words(); must be the same on
  /// all ranks. If the cache is full, the least recently used name is removed, together with its group.
  Participant(int rank, Settings settings, std::size_t capacity);

  /// Adds an operation that is ready on this rank. No other operation with its name may be waiting
  /// (IsWaiting). Times, here and below, are seconds on any clock of this rank.
  void Add(Request request, double now);
  bool IsWaiting(const std::string& name) const { return waiting_.contains(name); }
  /// From this call on, this rank submits no more operations. Once none of its operations is waiting, it
  /// contributes neutral elements until all ranks have joined.
  void Join() { joins_ = Said::kNew; }
  /// Ends the named operations on all ranks.
  void Leave() { leaves_ = Said::kNew; }

  /// Returns the words that must be combined over all ranks by bitwise AND. `has_news`: whether rank 0 needs
  /// the reports of all ranks in any case.
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
  /// Returns the cached names that all ranks must forget when a rank reports `request`: the request's own
  /// name, and one name of the request's group, with which the whole group is forgotten; each only if it is
  /// cached.
  std::vector<std::string> KnownBeside(const Request& request) const;
  /// If all ranks have joined and ready() is empty, returns the rank, in the job, that joined last, but only
  /// in the first call after that. Otherwise returns nullopt.
  std::optional<int> TakeLastJoined();
  /// The rank, in the job, that has ended the named operations by calling Leave; -1 if none has.
  int left() const { return left_; }

 private:
  enum class Said { kNothing, kNew, kTold };
  struct WaitingRequest {
    Request request;
    double since = 0;
    std::uint64_t number = 0;        ///< submission order
    bool told = false;               ///< whether the request has been reported to rank 0
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
  bool has_joined_ = false;  ///< whether rank 0 has announced to all ranks that this rank has joined
  std::optional<int> last_joined_;
  int left_ = -1;
  bool all_are_idle_ = true;
  ReadyList ready_;
};

}  // namespace warren::coordinator
