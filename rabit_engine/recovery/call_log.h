// The results of a sequence of calls, as far as this rank keeps them. Pure: memory only.
//
// A rank that is behind or that was started again is given the results it lacks, so results of calls it has
// not come to yet may be in the log: those are replayed. Which results are kept for good is settled by rank
// and number (KeepsResult). Besides, every rank keeps every result until it knows that all ranks have
// completed the call: a rank whose result is the only one in the world may not throw it away.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "rabit_engine/recovery/buffer.h"
#include "rabit_engine/recovery/plan.h"

namespace warren::recovery {

/// Whether a call that a rank has completed tells it that all other ranks had begun it, and thus completed
/// all before it.
enum class Meets { kAll, kNobody };

/// Not thread safe.
class CallLog {
 public:
  CallLog(int rank, int world_size, int replicas)
      : rank_(rank), world_size_(world_size), replicas_(replicas) {}

  std::uint64_t completed() const { return completed_; }
  /// The result of the next call, when it is known already; else null.
  const Buffer* Replay() const;
  /// The next call was replayed.
  void Step();
  /// The next call was completed together with the other ranks.
  void Append(Buffer result, Meets meets, BufferStock& stock);
  /// A result that another rank has sent.
  void Insert(std::uint64_t call, Buffer result);
  /// Null when it is not here.
  const Buffer* Find(std::uint64_t call) const;
  CallsReport Report() const;
  void Clear(BufferStock& stock);

 private:
  int rank_;
  int world_size_;
  int replicas_;
  std::uint64_t completed_ = 0;
  std::uint64_t first_unsure_ = 0;  ///< calls before it have been completed by all ranks
  std::deque<std::optional<Buffer>> results_;
};

}  // namespace warren::recovery
