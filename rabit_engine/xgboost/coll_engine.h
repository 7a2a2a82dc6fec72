// XGBoost 2.1 and later on this engine, without a change to it: its own communicator, of whoever's tracker,
// is what the ranks meet and agree over; from then on the collectives of its class Coll are the engine's.
//
// In any doubt on any rank all ranks stay on XGBoost's own.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace warren::xgboost {

/// What stands against serving the XGBoost that this address lies in, as far as looking at it tells; empty:
/// nothing. Communicates with nobody. Thread safe.
std::string Objections(const void* address_in_xgboost);

/// What a rank brings into Begin.
struct Wish {
  std::string objection;  ///< of its own, to being served; empty: none
  bool wants = true;      ///< whether its user would like to know why not
  bool demands = false;   ///< whether it is an error for its user if the engine serves nobody
  std::chrono::seconds timeout{
      0};  ///< how long a call may wait for a peer, where rabit_timeout=1 does not say; 0: half an hour
};

struct Beginning {
  bool serves = false;  ///< the same on all ranks
  std::string why_not;  ///< "rank 2: ...", the same on all ranks
  bool tells = false;   ///< true on one rank of those that want: the one that is to tell why not
  /// Whether a rank demands the engine; the same on all ranks. If it serves nobody, that rank fails, and the
  /// others are to fail with it, with the same reason: else they would report that a peer is lost.
  bool is_demanded = false;
};

/// From now on the engine serves the calls that this thread makes over its communicator of XGBoost's. All
/// ranks of a communicator of two or more call it, once it is initialized. Throws EngineError when XGBoost's
/// own communication fails. Errors of the engine come out of XGBoost's calls as its own do.
Beginning Begin(const void* address_in_xgboost, const Wish& wish = {});

/// Before the communicator is finalized, by the same thread: XGBoost's own serves again. All ranks call it;
/// it waits for them and may throw EngineError. `failed`: this rank gives up after an error, and the others
/// are not to wait for it; this waits for nobody. Does nothing where nothing is served.
void End(bool failed);

/// How many calls the engine has served in this process. Thread safe.
std::uint64_t NumServed();

}  // namespace warren::xgboost
