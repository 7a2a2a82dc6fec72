// The results that this rank keeps for a sequence of calls. Does no I/O.
//
// A rank that is behind or was restarted is sent the results it lacks, so the log may hold results of calls
// that the rank has not reached yet. These calls are replayed. The numbers of the rank and the call decide
// whether a result is kept until the log is cleared (KeepsResult). Other results, too, are kept until this
// rank knows that all ranks have completed the call, since its copy might be the last one in the job.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "rabit_engine/recovery/buffer.h"
#include "rabit_engine/recovery/plan.h"

namespace warren::recovery {

/// Whether completing a call proves that all other ranks had begun it, and thus had completed all earlier
/// calls.
enum class Meets { kAll, kNobody };

/// Not thread-safe.
class CallLog {
 public:
  CallLog(int rank, int world_size, int replicas)
      : rank_(rank), world_size_(world_size), replicas_(replicas) {}

  std::uint64_t completed() const { return completed_; }
  /// Returns the result of the next call if it is already known, else nullptr.
  const Buffer* Replay() const { return Find(completed_); }
  /// Counts the next call as completed, after its result was replayed.
  void Step() { ++completed_; }
  /// Adds the result of the next call, which this rank has run together with the other ranks, and counts the
  /// call as completed. Returns to `stock` the results that need not be kept any longer.
  void Append(Buffer result, Meets meets, BufferStock& stock);
  /// Adds a result that another rank has sent.
  void Insert(std::uint64_t call, Buffer result);
  /// Returns the result of a call, or nullptr if this log does not have it.
  const Buffer* Find(std::uint64_t call) const;
  CallsReport Report() const;
  void Clear(BufferStock& stock);

 private:
  int rank_;
  int world_size_;
  int replicas_;
  std::uint64_t completed_ = 0;
  std::uint64_t first_unsure_ = 0;  ///< all ranks are known to have completed the calls before this one
  std::deque<std::optional<Buffer>> results_;
};

}  // namespace warren::recovery
