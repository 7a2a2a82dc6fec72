// Selects the algorithm for a call: from a table (choice.cc), read from the top, unless WARREN_ALGORITHM
// overrides the table. The choice depends only on the arguments, and is the same on every rank because all
// ranks pass the same arguments.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "rabit_engine/collective/algorithm.h"

namespace warren::collective {

/// The conditions on which the choice depends.
struct Situation {
  Collective collective{};
  std::size_t bytes = 0;  ///< size of the whole vector
  int ranks = 1;          ///< number of participating ranks
  bool one_host = false;  ///< all ranks share memory
  bool levels = false;    ///< several hosts, some with several ranks
  /// Elements are small enough for the stages in shared memory.
  bool fits = true;
  /// Hosts may reduce first even if the order matters, because this keeps the order of the ranks or the user
  /// allows another order (WARREN_REPRODUCIBLE=0).
  bool levels_may_reduce = true;
  bool consecutive = true;  ///< the ranks on each host are consecutive
  int hosts = 1;
  bool order_matters = false;
  /// Results are rounded, and there are more than two ranks: algorithms that do not combine all values in one
  /// step are given 32-bit floats instead of 16-bit floats (in_floats.h), which doubles the bytes.
  bool rounds = false;
  bool crowded = false;  ///< some machine has more than two ranks per core
};

/// The algorithms that the user has requested for certain collectives.
class ForcedAlgorithms {
 public:
  ForcedAlgorithms() = default;
  /// `text`: "ring" requests ring for every collective that it serves; "allreduce=ring,broadcast=tree"
  /// requests an algorithm for each collective named. Throws Misuse if the text is invalid; `name` is the
  /// setting's name in messages.
  explicit ForcedAlgorithms(const std::string& text, std::string name = "WARREN_ALGORITHM");
  const std::string& name() const { return name_; }
  /// Returns nullptr if no algorithm is requested.
  const Algorithm* Find(Collective collective) const;

 private:
  std::string name_;
  std::map<Collective, const Algorithm*> by_collective_;
};

/// Returns the forced algorithm, or else the algorithm in the first row of the table that applies. The
/// algorithm serves the collective. Throws Misuse if a forced algorithm cannot work here.
const Algorithm& Choose(const Situation& situation, const ForcedAlgorithms& forced);

}  // namespace warren::collective
