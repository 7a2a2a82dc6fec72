// Runs random programs over the C API of the collectives, WARREN_RANDOM_PROGRAMS of them, with the engine
// that the environment selects. For each program, rank 0 prints a digest of all ranks' results, which is the
// same over MPI and over the engine's own links: "program <seed>: <digest>". If a rank finds no fault, its
// last line is "rank <r> of <w>: well".
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>

#include "tests/rabit_engine/api/c_communicator.h"
#include "tests/rabit_engine/engine/random_program.h"
#include "warren/c_api.h"

namespace {

using warren::testing::CCommunicator;
using warren::testing::CheckCall;
using warren::testing::NumPrograms;
using warren::testing::RandomProgram;

void Run() {
  CheckCall(WarrenInit(0, nullptr));
  {
    WarrenComm comm = nullptr;
    CheckCall(WarrenCommWorld(&comm));
    CCommunicator world(comm);
    for (std::uint64_t seed = 1; seed <= NumPrograms(4); ++seed) {
      RandomProgram program(seed, world, true);
      program.Run(40);
      if (::testing::Test::HasFailure()) throw std::runtime_error("a random program has another result");
      // The digest is weighted by rank, so that results swapped between ranks change the sum.
      std::uint64_t digest = program.digest() * (2 * static_cast<std::uint64_t>(world.rank()) + 1);
      CheckCall(WarrenAllreduce(comm, &digest, &digest, 1, WARREN_UINT64, WARREN_SUM));
      if (world.rank() == 0) fmt::print("program {}: {:016x}\n", seed, digest);
    }
    fmt::print("rank {} of {}: well\n", world.rank(), world.world_size());
  }
  CheckCall(WarrenFinalize());
}

}  // namespace

int main() {
  // The launcher writes the output of all ranks to one pipe as it arrives. A full buffer may end in the
  // middle of a line, which another rank's line would then split.
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  try {
    Run();
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
