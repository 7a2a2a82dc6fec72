// A rabit program that does not mention MPI: it is only linked with librabit_mpi.
#include <rabit/rabit.h>

#include <cstdio>

int main(int argc, char* argv[]) {
  rabit::Init(argc, argv);
  const int rank = rabit::GetRank();
  const int world = rabit::GetWorldSize();
  int sum = rank + 1;
  rabit::Allreduce<rabit::op::Sum>(&sum, 1);
  if (sum == world * (world + 1) / 2) std::printf("rank %d of %d: well\n", rank, world);
  rabit::Finalize();
  return 0;
}
