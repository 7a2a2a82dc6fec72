// What rank 0 makes of what all ranks tell it. Values in, values out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "rabit_engine/coordinator/request.h"

namespace warren::coordinator {

struct Patience {
  double warns_after =
      60;  ///< seconds until somebody is told whom a name waits for; again after twice as long
  double fails_after = 0;  ///< and until it ends with that as an error; 0: never
};

class Coordinator {
 public:
  /// Participant's.
  using KnownBeside = std::function<std::vector<std::string>(const Request&)>;

  /// `rank_in_job`: what messages call a rank.
  Coordinator(int size, Settings settings, Patience patience, std::function<int(int)> rank_in_job);

  /// Whether all have to send their messages, though no rank may have asked for it.
  bool IsDue(double now) const { return has_proposal_ || now >= next_due_; }
  /// From the next answer on.
  void Propose(const Settings& settings);
  /// Of one cycle, in rank order.
  Answer Take(std::span<const Message> messages, const KnownBeside& known_beside, double now);
  /// What people should hear since the last call: "'x' ... is ready on ranks 0, 2 and 3 and not on 1 since 60
  /// s".
  std::vector<std::string> TakeWarnings();

 private:
  struct Row {
    Request request;  ///< as the first of the ranks gave it
    int first = 0;    ///< that rank
    std::vector<bool> has;
    int num = 0;
    double since = 0;
    double next_warning = 0;
    std::string error;
    bool is_complete = false;                      ///< and waits for its group
    std::vector<std::string> groups;               ///< that ranks put it in
    std::vector<std::vector<std::uint64_t>> sent;  ///< of an all-to-all, by rank
    std::vector<std::vector<std::uint64_t>> received;
  };
  /// Names that ranks have put together, until they end.
  struct Group {
    std::uint32_t size = 0;  ///< as the first of the ranks said
    int first = 0;           ///< that rank
    std::vector<std::string> names;
    std::vector<std::string> complete;  ///< in the order in which they became it
    std::string error;                  ///< of all of them, also of those that nobody has given yet
    std::vector<std::string> ended;     ///< with it
  };

  void TakeRequest(int rank, const Message::Entry& entry, double now, Answer& answer,
                   const KnownBeside& known_beside);
  void Compare(Row& row, int rank, const Request& request) const;
  void PutInGroup(const std::string& name, int rank, const Request& request);
  void CompareCounts(Row& row) const;
  bool IsComplete(const Row& row) const;
  void Complete(const std::string& name, Answer& answer);
  void FailGroup(const std::string& name, const std::string& error, Answer& answer);
  void End(const std::string& name, const std::string& error, Answer& answer);
  void EndJoin(Answer& answer);
  void LookForLate(double now, Answer& answer);
  std::string Ranks(const std::function<bool(int)>& is_one) const;
  std::string WhoIsMissing(const Row& row, double now) const;

  int size_;
  Settings settings_;
  Patience patience_;
  std::function<int(int)> rank_in_job_;
  bool has_proposal_ = false;
  std::unordered_map<std::string, Row> rows_;
  std::unordered_map<std::string, Group> groups_;
  std::vector<bool> joined_;
  int num_joined_ = 0;
  int last_joined_ = -1;
  double next_due_ = std::numeric_limits<double>::infinity();
  std::vector<std::string> warnings_;
};

}  // namespace warren::coordinator
