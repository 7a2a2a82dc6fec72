/* A third-party rabit program in C. */
#include <rabit/c_api.h>

int main(int argc, char* argv[]) {
  int sum = 1;
  if (!RabitInit(argc, argv)) return 1;
  RabitAllreduce(&sum, 1, 2, 2, NULL, NULL);
  return RabitFinalize() && sum == 1 ? 0 : 1;
}
