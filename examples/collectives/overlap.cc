// Sums several vectors while this rank computes: first with handles, in the same order on all ranks, then by
// name, in a different order on each rank. Both give the same results as blocking calls.
#include <cstdio>
#include <string>
#include <vector>

#include "warren/collectives.h"

namespace {

/// The computation that overlaps with communication.
double Compute() {
  double sum = 0;
  for (int i = 1; i < 2'000'000; ++i) sum += 1.0 / i / i;
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  warren::Init(argc, argv);
  {
    const warren::Communicator world = warren::World();
    const auto rank = static_cast<float>(world.rank());
    std::vector<std::vector<float>> vectors(4, std::vector<float>(100'000, rank + 1));

    std::vector<warren::Handle> handles;
    handles.reserve(vectors.size());
    for (auto& vector : vectors) {
      handles.push_back(world.AsyncAllreduce(vector.data(), vector.data(), vector.size(), warren::Op::kSum));
    }
    const double meanwhile = Compute();
    warren::WaitAll(handles);

    const warren::Coordinator named(world);
    handles.clear();
    for (std::size_t i = 0; i < vectors.size(); ++i) {
      const std::size_t mine = (i + static_cast<std::size_t>(world.rank())) % vectors.size();
      auto& vector = vectors[mine];
      handles.push_back(named.EnqueueAllreduce("vector " + std::to_string(mine), vector.data(), vector.data(),
                                               vector.size(), warren::Op::kAverage));
    }
    const double again = Compute();
    warren::WaitAll(handles);

    if (world.rank() == 0) {
      std::printf("%d ranks: the sums are %.0f; computed meanwhile: %.3f and %.3f\n", world.size(),
                  static_cast<double>(vectors[3][99'999]), meanwhile, again);
    }
  }
  warren::Finalize();
  return 0;
}
