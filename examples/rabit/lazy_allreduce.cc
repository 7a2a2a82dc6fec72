// Allreduce with a prepare function, which fills the buffer only when needed: a restarted rank that receives
// the result from its peers does not compute its share again.
//
//     dmlc-submit --num-workers 2 rabit-lazy-allreduce
#include <rabit/rabit.h>

#include <cstdio>
#include <vector>

int main(int argc, char* argv[]) {
  rabit::Init(argc, argv);

  std::vector<long> squares(4);  // must be allocated even if prepare is not called
  const auto prepare = [&squares] {
    std::printf("rank %d computes its share\n", rabit::GetRank());
    for (std::size_t i = 0; i < squares.size(); ++i) {
      const long number = rabit::GetRank() + static_cast<long>(i);
      squares[i] = number * number;
    }
  };
  rabit::Allreduce<rabit::op::Sum>(squares.data(), squares.size(), prepare);

  std::printf("rank %d has the sums of squares: %ld %ld %ld %ld\n", rabit::GetRank(), squares[0], squares[1],
              squares[2], squares[3]);
  rabit::Finalize();
  return 0;
}
