// A rabit program that says nothing of MPI: linking it with librabit_mpi is all that was done.
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
