// XGBoost's communicator, called through its C API. Calls are passed to this thread's handler (coll_table.h),
// or run over XGBoost's own links if no handler serves them. All ranks make the same calls in the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "rabit_engine/bootstrap/bootstrap.h"
#include "rabit_engine/xgboost/loaded_library.h"
#include "rabit_engine/xgboost/vtable.h"

namespace warren::xgboost {

/// The communicator of the calling thread. Throws EngineError if XGBoost reports an error.
class OwnCommunicator {
 public:
  /// Throws Refusal if the library lacks one of the functions.
  explicit OwnCommunicator(const LoadedLibrary& library);

  int rank() const { return rank_(); }
  int world_size() const { return world_size_(); }

  /// `type` and `operation` are XGBoost's codes (codes.h).
  void Allreduce(void* buffer, std::size_t count, int type, int operation) const;
  void Broadcast(void* buffer, std::size_t bytes, int root) const;
  /// Copies each rank's share of the buffer to all ranks. All shares have the same size. `bytes`: the size of
  /// the whole buffer.
  void Allgather(void* buffer, std::size_t bytes) const;
  void Print(const std::string& text) const;

 private:
  void Check(int code, const char* what) const;

  int (*rank_)() = nullptr;
  int (*world_size_)() = nullptr;
  int (*allreduce_)(void*, std::size_t, int, int) = nullptr;
  int (*broadcast_)(void*, std::size_t, int) = nullptr;
  int (*allgather_)(void*, std::size_t) = nullptr;
  int (*print_)(const char*) = nullptr;
  const char* (*last_error_)() = nullptr;
};

/// Rounds in which all ranks take part. In each round, any rank can report a failure to all others, so that
/// no rank waits for another that has given up.
class Rounds {
 public:
  explicit Rounds(const OwnCommunicator& own) : own_(own) {}

  const OwnCommunicator& own() const { return own_; }
  /// Runs the first round. Throws EngineError if another rank is in another call instead.
  void Meet() const;
  /// Returns the maximum of `number`, which must be below 2^63, over all ranks. Throws Refusal on all ranks
  /// if the function that Do runs has thrown on another rank.
  std::uint64_t Greatest(std::uint64_t number);
  /// Runs `something` and informs the other ranks whether it succeeded. If it threw on any rank, throws
  /// Refusal on all ranks. `something` may itself run rounds.
  void Do(const std::function<void()>& something);

 private:
  std::uint64_t Round(std::uint64_t number, const std::string& objection);

  OwnCommunicator own_;
  std::string refusal_;  ///< the reason given to all ranks
};

/// Returns a bootstrap in which the ranks meet over XGBoost's communicator; no other tracker is needed.
std::unique_ptr<Bootstrap> MakeBootstrapOver(std::shared_ptr<Rounds> rounds);

}  // namespace warren::xgboost
