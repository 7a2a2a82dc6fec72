// Selects the algorithm for a call: from a table (choice.cc), unless WARREN_ALGORITHM overrides the table.
// The choice depends only on the arguments, and is the same on every rank because all ranks pass the same
// arguments.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "rabit_engine/collective/algorithm.h"

namespace warren::collective {

/// The conditions on which the choice depends.
struct Situation {
  Collective collective{};
  std::size_t bytes = 0;  ///< size of the whole vector; 0 for gather, scatter and all-to-all
  int ranks = 1;          ///< number of participating ranks
  bool one_host = false;  ///< whether all ranks share memory
  bool levels = false;    ///< whether there are several hosts, some with several ranks
  /// Whether elements are small enough for the stages in shared memory.
  bool fits = true;
  /// Whether hosts may reduce first even if the order matters, because this keeps the engine's order or the
  /// user allows another order (WARREN_REPRODUCIBLE=0).
  bool levels_may_reduce = true;
  bool consecutive = true;  ///< whether the ranks on each host are consecutive
  int hosts = 1;
  bool order_matters = false;
  /// Whether results are rounded and there are more than two ranks. Algorithms that do not combine all values
  /// in one step are then given 32-bit floats instead of 16-bit floats (in_floats.h), which doubles the
  /// bytes.
  bool rounds = false;
  bool crowded = false;  ///< whether some machine has more than two ranks per core
};

/// The algorithms that the user has requested instead of the table's.
class ForcedAlgorithms {
 public:
  ForcedAlgorithms() = default;
  /// `text`: "ring" requests ring for every collective that it serves; "allreduce=ring,broadcast=tree"
  /// requests an algorithm for each collective named. Throws Misuse if the text is invalid; `name` is the
  /// setting's name in messages.
  explicit ForcedAlgorithms(const std::string& text, std::string name = "WARREN_ALGORITHM");
  const std::string& name() const { return name_; }
  /// Returns the algorithm requested for this collective, or nullptr.
  const Algorithm* Find(Collective collective) const;

 private:
  std::string name_;
  std::map<Collective, const Algorithm*> by_collective_;
};

/// Returns the algorithm requested for the collective, or else the algorithm in the first row of the table
/// that applies. The algorithm serves the collective. Throws Misuse if a requested algorithm cannot work in
/// this situation.
const Algorithm& Choose(const Situation& situation, const ForcedAlgorithms& forced);

}  // namespace warren::collective
