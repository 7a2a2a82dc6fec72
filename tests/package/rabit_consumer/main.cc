// A third-party rabit program.
#include <rabit/c_api.h>
#include <rabit/rabit.h>

#include <cstdio>

int main(int argc, char* argv[]) {
  rabit::Init(argc, argv);
  double sum = 1;
  rabit::Allreduce<rabit::op::Sum>(&sum, 1);
  std::printf("%d of %d: %g\n", RabitGetRank(), rabit::GetWorldSize(), sum);
  const bool good = sum == rabit::GetWorldSize() && RabitGetWorldSize() == rabit::GetWorldSize();
  return rabit::Finalize() && good ? 0 : 1;
}
