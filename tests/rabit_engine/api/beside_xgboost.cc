// A program with two copies of rabit: ours, in a job, and the one inside libxgboost, which ours must not
// affect. Between two of our collectives, each rank trains its own model with XGBoost and writes it to
// <argv[1]><rank>.json.
#include <rabit/rabit.h>

#include <string>

#include "tests/rabit_engine/api/train_small_model.h"

namespace {

bool XgboostKnowsNoJob() {
  return XGCommunicatorGetRank() == 0 && XGCommunicatorGetWorldSize() == 1 &&
         XGCommunicatorIsDistributed() == 0;
}

struct Pair {
  int low, high;
};
void Join(Pair& left, const Pair& right) {
  left.low = rabit::Min(left.low, right.low);
  left.high = rabit::Max(left.high, right.high);
}

}  // namespace

int main(int argc, char* argv[]) {
  rabit::Init(argc, argv);
  const int rank = rabit::GetRank();
  const int world = rabit::GetWorldSize();

  int ranks = 1;
  rabit::Allreduce<rabit::op::Sum>(&ranks, 1);
  bool good = XgboostKnowsNoJob() && TrainSmallModel(argv[1] + std::to_string(rank) + ".json");
  rabit::Reducer<Pair, Join> reducer;
  Pair pair = {rank, rank};
  reducer.Allreduce(&pair, 1);

  // XGBoost has in-memory stream classes with the same names as ours; they must not replace ours.
  std::string bytes;
  rabit::utils::MemoryBufferStream stream(&bytes);
  stream.Write("x", 1);
  good = good && XgboostKnowsNoJob() && ranks == world && pair.low == 0 && pair.high == world - 1 &&
         bytes == "x";
  rabit::Finalize();
  return good ? 0 : 1;
}
