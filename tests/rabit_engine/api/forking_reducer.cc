// A program whose reduction function forks, which no program should do. The child returns from the function
// as if nothing had happened and must get an error; the parent's job continues. The function forks when a
// rank calls it for the argv[1]-th time.
#include <rabit/rabit.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

namespace {

struct Pair {
  int sum;
  int count;
};

int forks_in = 0;
int calls = 0;
pid_t child = -1;

void Add(Pair& dst, const Pair& src) {
  if (++calls == forks_in) child = fork();
  dst.sum += src.sum;
  dst.count += src.count;
}

}  // namespace

int main(int argc, char* argv[]) {
  rabit::Init(0, nullptr);
  forks_in = argc > 1 ? std::atoi(argv[1]) : 1;
  rabit::Reducer<Pair, Add> reducer;
  const int rank = rabit::GetRank();
  const int ranks = rabit::GetWorldSize();
  bool right = true;
  try {
    for (int round = 0; round < 20; ++round) {
      std::vector<Pair> pairs(50, Pair{rank + round, 1});
      reducer.Allreduce(pairs.data(), pairs.size());
      if (child == 0) {
        std::puts("the child took part");
        std::fflush(stdout);
        _exit(1);
      }
      for (const Pair& pair : pairs) {
        right = right && pair.count == ranks && pair.sum == ranks * (ranks - 1) / 2 + ranks * round;
      }
    }
  } catch (const std::exception& error) {
    if (child != 0) throw;
    std::printf("the child was told: %s\n", error.what());
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  if (child > 0) right = waitpid(child, &status, 0) == child && status == 0 && right;
  if (right) std::printf("sums are right, %s\n", child > 0 ? "and there was a child" : "and there was none");
  rabit::Finalize();
  return right ? 0 : 1;
}
