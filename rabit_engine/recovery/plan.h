// What ranks do when they meet after a loss: where everybody goes on, and what is sent to whom for it. Pure:
// a function of what the ranks report, the same on all of them. docs/explanation/recovery.md tells the whole
// story.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rabit_engine/base/error.h"

namespace warren::recovery {

/// What nobody has any more was needed.
class Unrecoverable : public EngineError {
 public:
  using EngineError::EngineError;
};

/// Something that a rank keeps, by number: the result of a call, or a rank's local model.
struct Kept {
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const Kept&, const Kept&) = default;
};

/// How far a rank is in a sequence of calls whose results are kept, and which of them it has. It may have
/// some that it has not come to yet: those it was sent in order to catch up.
struct CallsReport {
  std::uint64_t completed = 0;
  std::vector<Kept> results;  ///< by ascending number
  friend bool operator==(const CallsReport&, const CallsReport&) = default;
};

/// The models of one version as far as a rank has them.
struct ModelsReport {
  bool has_global = false;                    ///< the version has one
  std::optional<std::uint64_t> global_bytes;  ///< and this rank can give it
  std::vector<Kept> locals;                   ///< by the rank whose they are, ascending
  friend bool operator==(const ModelsReport&, const ModelsReport&) = default;
};

/// What one rank says.
struct Report {
  bool fresh = true;    ///< a process that has just been started: all below means nothing
  bool loaded = false;  ///< has called LoadCheckPoint
  CallsReport before;   ///< calls before LoadCheckPoint
  int version = 0;
  ModelsReport models;  ///< of `version`
  CallsReport calls;    ///< since `version`
  bool ending = false;  ///< is inside CheckPoint, which ends `version`
  ModelsReport next;    ///< of version + 1, when it is
  friend bool operator==(const Report&, const Report&) = default;
};

std::string Encode(const Report& report);
/// Throws EngineError for what Encode does not write.
Report Decode(std::string_view bytes);

/// How many ranks keep what. Both are counted with the rank whose it is.
struct Replicas {
  int results = 5;  ///< rabit_global_replica
  int locals = 3;   ///< rabit_local_replica + 1
};

/// Whether `rank` keeps the result of a call for good: about `replicas` ranks do, other ones for each call.
bool KeepsResult(int rank, int world_size, std::uint64_t call, int replicas);
/// Whether `rank` keeps a copy of the local model of `owner`: the next in the ring do.
bool KeepsLocal(int rank, int world_size, int owner, int replicas);

enum class What : std::uint8_t { kGlobalModel, kLocalModel, kResultBefore, kResult };

struct Transfer {
  What what{};
  std::uint64_t number = 0;  ///< the call, or the rank whose local model it is
  int from = -1;
  int to = -1;
  std::uint64_t bytes = 0;
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

/// Where everybody is after the meeting; results up to there are at hand wherever they are needed.
struct Plan {
  bool loaded = false;             ///< somebody has called LoadCheckPoint
  std::uint64_t calls_before = 0;  ///< calls before LoadCheckPoint that somebody has completed
  int version = 0;                 ///< ranks that are ending the version before it have ended it
  std::uint64_t calls = 0;         ///< calls since then that somebody has completed
  std::vector<Transfer> transfers;
};

/// Throws Unrecoverable, with what is lost and who had it, or EngineError when the reports contradict each
/// other.
Plan MakePlan(std::span<const Report> reports, const Replicas& replicas);

}  // namespace warren::recovery
