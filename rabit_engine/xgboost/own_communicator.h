// XGBoost's communicator, as its C API has it. The calls go to whoever handles this thread's (coll_table.h),
// to XGBoost's own links where nobody does. All ranks make the same calls in the same order.
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

/// Of the thread that calls it. Errors of XGBoost's are EngineError.
class OwnCommunicator {
 public:
  /// Throws Refusal where the library lacks one of the functions.
  explicit OwnCommunicator(const LoadedLibrary& library);

  int rank() const { return rank_(); }
  int world_size() const { return world_size_(); }

  /// `type` and `operation` in XGBoost's codes.
  void Allreduce(void* buffer, std::size_t count, int type, int operation) const;
  void Broadcast(void* buffer, std::size_t bytes, int root) const;
  /// Each rank's share of the buffer, all of one size, becomes everybody's.
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

/// Why all ranks stay on XGBoost's own: one of them had an objection, and all know it.
class AgreedRefusal : public Refusal {
 public:
  using Refusal::Refusal;
};

/// Rounds of all ranks, in each of which any of them can object, so that nobody waits for one who does not
/// come.
class Rounds {
 public:
  explicit Rounds(const OwnCommunicator& own) : own_(own) {}

  const OwnCommunicator& own() const { return own_; }
  /// The first round. Throws EngineError where a rank is in a call of its own instead.
  void Meet() const;
  /// The greatest of all ranks' numbers, which are below 2^63. Throws AgreedRefusal on all ranks when one
  /// objects.
  std::uint64_t Greatest(std::uint64_t number);
  /// Does something, and lets the others know whether it could be done. When it threw on any rank this throws
  /// AgreedRefusal on all. What is done may have rounds of its own.
  void Do(const std::function<void()>& something);

 private:
  std::uint64_t Round(std::uint64_t number, const std::string& objection);

  OwnCommunicator own_;
  std::string refusal_;  ///< that all know of
};

/// The ranks of XGBoost's communicator, who meet over it: no other tracker is needed.
std::unique_ptr<Bootstrap> MakeBootstrapOver(std::shared_ptr<Rounds> rounds);

}  // namespace warren::xgboost
