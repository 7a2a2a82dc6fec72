// The first rabit program: every rank contributes numbers and receives their maxima. Then the ranks sum the
// maxima.
//
//     dmlc-submit --num-workers 3 rabit-basic
#include <rabit/rabit.h>

#include <cstdio>
#include <vector>

namespace {

void Show(const char* when, const std::vector<int>& numbers) {
  std::printf("rank %d %s: %d %d %d\n", rabit::GetRank(), when, numbers[0], numbers[1], numbers[2]);
}

}  // namespace

int main(int argc, char* argv[]) {
  rabit::Init(argc, argv);

  const int rank = rabit::GetRank();
  std::vector<int> numbers = {rank, rank + 1, rank + 2};
  Show("brings", numbers);

  rabit::Allreduce<rabit::op::Max>(numbers.data(), numbers.size());
  Show("has the maxima", numbers);

  // All ranks now hold the same numbers, so each sum is the number times the world size.
  rabit::Allreduce<rabit::op::Sum>(numbers.data(), numbers.size());
  Show("has the sums", numbers);

  rabit::Finalize();
  return 0;
}
