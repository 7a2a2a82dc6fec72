// The root broadcasts a string, a vector and plain memory to all ranks.
//
//     dmlc-submit --num-workers 3 rabit-broadcast
#include <rabit/rabit.h>

#include <cstdio>
#include <string>
#include <vector>

int main(int argc, char* argv[]) {
  rabit::Init(argc, argv);
  const int root = rabit::GetWorldSize() - 1;

  std::string greeting;
  std::vector<double> weights;
  long seed = 0;
  if (rabit::GetRank() == root) {
    greeting = "good morning from the last rank";
    weights = {0.5, 0.25, 0.125};
    seed = 20140829;
  }

  // Strings and vectors are resized to the root's length; plain memory must already have the right size.
  rabit::Broadcast(&greeting, root);
  rabit::Broadcast(&weights, root);
  rabit::Broadcast(&seed, sizeof(seed), root);

  std::printf("rank %d: %s, %zu weights, the last one %g, seed %ld\n", rabit::GetRank(), greeting.c_str(),
              weights.size(), weights.back(), seed);
  rabit::Finalize();
  return 0;
}
