// The state that rabit keeps so that a restarted worker can continue.
#pragma once

#include <rabit/rabit.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "examples/histgbt/dataset.h"
#include "examples/histgbt/tree.h"

namespace warren::histgbt {

/// The state of a training run, identical on all workers after each round. The first checkpoint is taken
/// before round 0, once the data are loaded.
struct State : public rabit::Serializable {
  Agreed agreed;
  std::vector<Tree> trees;
  std::uint64_t rounds = 0;
  double best_score = std::numeric_limits<double>::quiet_NaN();
  std::uint64_t best_round = 0;  ///< zero-based round with the best score
  bool stopped = false;          ///< whether training stopped early

  void Load(rabit::Stream* stream) override;
  void Save(rabit::Stream* stream) const override;
};

}  // namespace warren::histgbt
