// Which algorithm serves which call: one table (choice.cc), read from the top, and WARREN_ALGORITHM over it.
// Pure: the same on every rank, because all of them know the same facts.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "rabit_engine/collective/algorithm.h"

namespace warren::collective {

/// What the choice depends on.
struct Situation {
  Collective collective{};
  std::size_t bytes = 0;  ///< of the whole vector
  int ranks = 1;          ///< that take part
  bool one_host = false;  ///< all ranks share memory
  bool levels = false;    ///< several hosts, some with several ranks
  /// Elements are small enough for the stages in shared memory.
  bool fits = true;
  /// Reducing inside the hosts first is allowed: it keeps the order of the ranks, or the order does not
  /// matter, or the user said so (WARREN_REPRODUCIBLE=0).
  bool levels_may_reduce = true;
  bool consecutive = true;  ///< the ranks of each host follow each other
  int hosts = 1;
  bool order_matters = false;
  /// Results are rounded, and there are more than two ranks: whoever does not combine all values at once is
  /// given floats in place of 16-bit ones (in_floats.h), twice the bytes.
  bool rounds = false;
  bool crowded = false;  ///< some machine has more than two of the ranks for each of its cores
};

/// The user's wishes: per collective, the algorithm to take.
class ForcedAlgorithms {
 public:
  ForcedAlgorithms() = default;
  /// "ring": for every collective that has it. "allreduce=ring,broadcast=tree": for these. Throws Misuse that
  /// says `name` of what the user has set.
  explicit ForcedAlgorithms(const std::string& text, std::string name = "WARREN_ALGORITHM");
  const std::string& name() const { return name_; }
  /// nullptr: there is no wish.
  const Algorithm* Find(Collective collective) const;

 private:
  std::string name_;
  std::map<Collective, const Algorithm*> by_collective_;
};

/// The forced algorithm, or else that of the first row of the table that fits; it serves the collective.
/// Throws Misuse when a forced one cannot work here.
const Algorithm& Choose(const Situation& situation, const ForcedAlgorithms& forced);

}  // namespace warren::collective
