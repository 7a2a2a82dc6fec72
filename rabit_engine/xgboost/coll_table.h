// Redirects the calls that XGBoost makes to its class Coll to the calling thread's handler. Four functions in
// the class's table of virtual functions are replaced by ours, which call XGBoost's own function if no
// handler serves the call.
//
// The process has one table; each thread has its own handler, as it has its own XGBoost communicator.
#pragma once

#include <cstddef>
#include <span>

#include "rabit_engine/xgboost/coll_calls.h"
#include "rabit_engine/xgboost/loaded_library.h"

namespace warren::xgboost {

/// Indices of functions in Coll's table. They follow two destructors and MakeCUDAVar, in the order of the
/// class's declaration.
enum class CollFunction : std::size_t { kAllreduce = 3, kBroadcast = 4, kAllgather = 5, kAllgatherV = 6 };
inline constexpr std::size_t kNumCollFunctions = 7;

class CallHandler {
 public:
  virtual ~CallHandler() = default;
  /// Returns whether the call was served; if not, XGBoost's own function runs. May throw: XGBoost's C
  /// functions report std::exception to their callers.
  virtual bool Handle(CollFunction function, const Words& words) = 0;
};

/// Finds Coll's table in this library, even if Intercept has replaced its functions. Throws Refusal if the
/// table is not found. Thread-safe.
std::span<void* const> FindCollTable(const LibraryImage& image);

/// Puts our functions into Coll's table, unless they are there already. They stay forever, so this library
/// must never be unloaded. Throws Refusal if another table of this process was intercepted, or the memory
/// cannot be written. Thread-safe.
void Intercept(std::span<void* const> table, const LibraryImage& image);

/// While this object lives, this thread's calls are passed to the handler first; if the handler is null,
/// directly to XGBoost's own functions.
class HandledBy {
 public:
  explicit HandledBy(CallHandler* handler);
  ~HandledBy();
  HandledBy(const HandledBy&) = delete;
  HandledBy& operator=(const HandledBy&) = delete;

 private:
  CallHandler* before_;
};

/// Like HandledBy, but the handler stays until this function is called with another handler or null.
void SetHandler(CallHandler* handler);

}  // namespace warren::xgboost
