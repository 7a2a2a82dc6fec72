// Two-level allreduce by hand: each host reduces its ranks' gradients to one leader, the leaders allreduce,
// and each leader broadcasts the result on its host. (Allreduce on the world does this by itself when it is
// faster.)
//
//     dmlc-submit --num-workers 4 build/bin/collectives-groups
#include <cstdio>
#include <vector>

#include "warren/collectives.h"

int main(int argc, char** argv) {
  try {
    warren::Init(argc, argv);
    {
      const warren::Communicator world = warren::World();
      const warren::Communicator host = world.Local();
      const warren::Communicator leaders = world.Split(host.rank() == 0 ? 0 : -1);

      std::vector<double> gradient(1000, world.rank() + 1.0);
      std::vector<double> sum(gradient.size());
      host.Reduce(gradient.data(), sum.data(), sum.size(), warren::Op::kSum, 0);
      if (leaders) leaders.Allreduce(sum.data(), sum.size(), warren::Op::kSum);
      host.Broadcast(sum.data(), sum.size(), 0);

      // The same sum in one call.
      world.Allreduce(gradient.data(), gradient.size(), warren::Op::kSum);
      std::printf("rank %d, %d of %d on its host: the sum is %g by levels and %g in one call\n", world.rank(),
                  host.rank(), host.size(), sum[0], gradient[0]);
    }
    warren::Finalize();
    return 0;
  } catch (const warren::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
