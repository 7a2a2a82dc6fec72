// XGBoost's calls of its class Coll, led to whoever serves them in this thread: the four functions of its
// table are replaced by ours, which pass every call on to XGBoost's own where nobody takes it.
//
// The table is the process's, the handler a thread's, as XGBoost's communicators are.
#pragma once

#include <cstddef>
#include <span>

#include "rabit_engine/xgboost/coll_calls.h"
#include "rabit_engine/xgboost/loaded_library.h"

namespace warren::xgboost {

/// Of Coll's virtual functions, as its declaration has them, behind two destructors and MakeCUDAVar.
enum class CollFunction : std::size_t { kAllreduce = 3, kBroadcast = 4, kAllgather = 5, kAllgatherV = 6 };
inline constexpr std::size_t kNumCollFunctions = 7;

class CallHandler {
 public:
  virtual ~CallHandler() = default;
  /// Whether the call has been served; else it is XGBoost's. May throw: XGBoost's C functions hand
  /// std::exception to their callers.
  virtual bool Handle(CollFunction function, const Words& words) = 0;
};

/// Coll's table in this library, with whatever functions are in it now. Throws Refusal. Thread safe.
std::span<void* const> FindCollTable(const LibraryImage& image);

/// Puts our functions into Coll's table, once in a process, for ever: this library is never unloaded. Throws
/// Refusal where there is another table in this process, or the memory cannot be written. Thread safe.
void Intercept(std::span<void* const> table, const LibraryImage& image);

/// While it lives, the calls of this thread go to the handler first, or, without one, to XGBoost's own at
/// once.
class HandledBy {
 public:
  explicit HandledBy(CallHandler* handler);
  ~HandledBy();
  HandledBy(const HandledBy&) = delete;
  HandledBy& operator=(const HandledBy&) = delete;

 private:
  CallHandler* before_;
};

/// The same without an end: until it is called with null.
void SetHandler(CallHandler* handler);

}  // namespace warren::xgboost
