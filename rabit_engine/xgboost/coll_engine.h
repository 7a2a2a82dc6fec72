// Runs XGBoost 2.1 and later on this engine, without changing XGBoost. The ranks meet and agree over
// XGBoost's own communicator, whichever tracker it uses; from then on the engine runs the collectives of
// XGBoost's class Coll.
//
// If any rank reports an objection, all ranks keep XGBoost's own communication.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace warren::xgboost {

/// Inspects the XGBoost library that contains this address. Returns the reason why it cannot be served; empty
/// if no reason was found. Does not communicate. Thread-safe.
std::string Objections(const void* address_in_xgboost);

/// A rank's input to Begin.
struct Wish {
  std::string objection;  ///< reason why this rank cannot use the engine; empty if none
  bool wants = true;      ///< whether to tell the user if the engine is not used
  bool demands = false;   ///< whether it is an error if the engine is not used
  /// The time limit for waiting for a peer in a call, unless rabit_timeout=1 sets another; 0 means 30
  /// minutes.
  std::chrono::seconds timeout{0};
};

struct Beginning {
  bool serves = false;  ///< whether the engine serves XGBoost's calls; the same on all ranks
  std::string why_not;  ///< why the engine is not used, e.g. "rank 2: ..."; the same on all ranks
  bool tells = false;   ///< true on only one of the ranks with `wants`: the rank that reports why_not
  /// Whether any rank demands the engine; the same on all ranks. If the engine does not serve, a rank that
  /// demands it fails, and the others should fail with the same reason; otherwise they would report a lost
  /// peer.
  bool is_demanded = false;
};

/// Starts serving the calls that this thread makes over its XGBoost communicator, which must have at least
/// two ranks. A collective call, made after the communicator is initialized. Throws EngineError if XGBoost's
/// own communication fails, or if another rank is in another call. XGBoost's calls report errors of the
/// engine like their own.
Beginning Begin(const void* address_in_xgboost, const Wish& wish = {});

/// Stops serving, so that XGBoost's own communication is used again. Must be called by the same thread as
/// Begin, before the communicator is finalized. Collective: waits for the other ranks and may throw
/// EngineError. With `failed`, or if a served call has failed, this rank gives up: it does not wait for the
/// other ranks, and they do not wait for it. Does nothing if nothing is served.
void End(bool failed);

/// Returns the number of calls that the engine has served in this process, including the test calls that
/// Begin makes. Thread-safe.
std::uint64_t NumServed();

}  // namespace warren::xgboost
