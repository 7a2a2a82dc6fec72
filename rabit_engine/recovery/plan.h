// The plan for ranks that meet after a loss: the call from which all of them continue, and the data that each
// rank must be sent to reach this call. The plan is a pure function of the ranks' reports, so it is the same
// on all ranks. docs/explanation/recovery.md explains recovery as a whole.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rabit_engine/base/error.h"

namespace warren::recovery {

/// Thrown if needed data is lost on all ranks.
class Unrecoverable : public EngineError {
 public:
  using EngineError::EngineError;
};

/// A result or local model that a rank keeps. `number`: the call that had this result, or the rank that owns
/// the model.
struct Kept {
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const Kept&, const Kept&) = default;
};

/// A rank's progress in a sequence of calls whose results are kept, and the results that it has. They may
/// include results of calls that the rank has not reached yet, sent to it so that it can catch up.
struct CallsReport {
  std::uint64_t completed = 0;
  std::vector<Kept> results;  ///< by ascending number
  friend bool operator==(const CallsReport&, const CallsReport&) = default;
};

/// The models of one version that a rank has.
struct ModelsReport {
  bool has_global = false;                    ///< whether the version has a global model
  std::optional<std::uint64_t> global_bytes;  ///< the global model's size, if this rank can send it
  std::vector<Kept> locals;                   ///< by the rank that owns the model, ascending
  friend bool operator==(const ModelsReport&, const ModelsReport&) = default;
};

/// The state of one rank.
struct Report {
  bool fresh = true;    ///< whether it has never met the other ranks; the other members are then meaningless
  bool loaded = false;  ///< whether the rank has called LoadCheckPoint
  CallsReport before;   ///< calls before LoadCheckPoint
  int version = 0;
  ModelsReport models;  ///< the models of `version`
  CallsReport calls;    ///< calls since `version` began
  bool ending = false;  ///< whether the rank is inside CheckPoint, which ends `version`
  ModelsReport next;    ///< the models of version + 1, if `ending`
  friend bool operator==(const Report&, const Report&) = default;
};

std::string Encode(const Report& report);
/// Throws EngineError if Encode cannot have written the bytes.
Report Decode(std::string_view bytes);

/// The minimum number of ranks that keep each result, and the number that keep each local model, including
/// its owner.
struct Replicas {
  int results = 5;  ///< rabit_global_replica
  int locals = 3;   ///< rabit_local_replica + 1
};

/// Whether `rank` keeps the result of a call even after all ranks have completed the call. At least
/// `replicas` ranks do (or all ranks), and fewer than twice as many; the call's number determines which ones.
bool KeepsResult(int rank, int world_size, std::uint64_t call, int replicas);
/// Whether `rank` keeps the local model of `owner`: the owner and the next replicas - 1 ranks do, cyclically.
bool KeepsLocal(int rank, int world_size, int owner, int replicas);

enum class What : std::uint8_t { kGlobalModel, kLocalModel, kResultBefore, kResult };

struct Transfer {
  What what{};
  std::uint64_t number = 0;  ///< the call, or the rank that owns the local model
  int from = -1;
  int to = -1;
  std::uint64_t bytes = 0;
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

/// The point from which all ranks continue after the meeting. The transfers give each rank the data that it
/// needs to reach this point.
struct Plan {
  bool loaded = false;             ///< whether some rank has called LoadCheckPoint
  std::uint64_t calls_before = 0;  ///< number of calls before LoadCheckPoint that some rank has completed
  /// The version in which all ranks continue. A rank that is still ending the previous version ends it when
  /// it follows the plan.
  int version = 0;
  std::uint64_t calls = 0;  ///< number of calls in `version` that some rank has completed
  std::vector<Transfer> transfers;
};

/// Throws Unrecoverable, whose message names the lost data, or EngineError if the reports contradict each
/// other.
Plan MakePlan(std::span<const Report> reports, const Replicas& replicas);

}  // namespace warren::recovery
