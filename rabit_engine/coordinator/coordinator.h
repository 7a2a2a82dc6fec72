// Rank 0's decisions about named operations, computed from the reports of all ranks. Uses no clock and does
// no communication.
#pragma once

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
  /// Seconds until a warning names the ranks that have not submitted a name. The warning is repeated each
  /// time the wait has doubled.
  double warns_after = 60;
  /// Seconds until the operation ends with an error that has the warning's text; 0 means never.
  double fails_after = 0;
};

class Coordinator {
 public:
  /// See Participant::KnownBeside.
  using KnownBeside = std::function<std::vector<std::string>(const Request&)>;

  /// `rank_in_job` maps a rank to its rank in the job, which answers, errors and warnings contain.
  Coordinator(int size, Settings settings, Patience patience, std::function<int(int)> rank_in_job);

  /// Whether all ranks must send their reports even if no rank has anything to report.
  bool IsDue(double now) const { return has_proposal_ || now >= next_due_; }
  /// Sets the settings that all ranks use after the next answer.
  void Propose(const Settings& settings);
  /// Returns the answer to the ranks' messages of one cycle. `messages` is in rank order.
  Answer Take(std::span<const RankReport> messages, const KnownBeside& known_beside, double now);
  /// Returns the warnings that were made since the last call, e.g. "'x' ... has been ready on rank 0 but not
  /// on rank 1 for 60 s".
  std::vector<std::string> TakeWarnings();

 private:
  struct Row {
    Request request;  ///< as submitted by rank `first`, with rank 0's priority
    int first = 0;    ///< the first rank that submitted the name
    std::vector<bool> has;
    int num = 0;
    double since = 0;
    double next_warning = 0;
    std::string error;
    bool is_complete = false;                      ///< whether it only waits for the rest of its group
    std::vector<std::string> groups;               ///< the groups in which ranks have submitted the name
    std::vector<std::vector<std::uint64_t>> sent;  ///< for an all-to-all, by rank
    std::vector<std::vector<std::uint64_t>> received;
  };
  /// A group of names; kept until its last member has ended.
  struct Group {
    std::uint32_t size = 0;  ///< as given by rank `first`; the smallest size given if the ranks disagree
    int first = 0;           ///< the first rank that submitted a member
    std::vector<std::string> names;
    std::vector<std::string> complete;  ///< in the order in which they became complete
    std::string error;                  ///< the error of all members, including those not submitted yet
    std::vector<std::string> ended;     ///< members that ended with the error
  };

  void TakeRequest(int rank, const RankReport::Entry& entry, double now, Answer& answer,
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
