// A program that calls MPI itself, before and after it uses the engine, which must neither initialize nor
// finalize MPI. It is compiled against each MPI; the engine must find the MPI that the process has loaded,
// whatever the environment says.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <fmt/format.h>
#include <mpi.h>

#include <cstdlib>
#include <exception>

#include "rabit_engine/mpi/mpi_engine.h"
#include "rabit_engine/reduce/reduction.h"

namespace {

void Require(bool condition, const char* what) {
  if (condition) return;
  fmt::print(stderr, "found wrong: {}\n", what);
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  try {
    for (int round = 0; round < 2; ++round) {  // the program owns MPI, so the engine can join again
      const auto world = warren::JoinMpi(warren::Settings{});
      Require(world->rank() == rank, "the rank is another than MPI's");
      int sum = 1;
      world->Allreduce(&sum, 1, warren::Reduction::Typed(warren::DataType::kInt, warren::ReduceOp::kSum));
      Require(sum == world->world_size(), "the sum over all ranks");
      world->Finalize();
      int finalised = 1;
      MPI_Finalized(&finalised);
      Require(finalised == 0, "the engine has ended a program's MPI");
    }
    int sum = 1;
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    fmt::print("rank {} of {}: well\n", rank, sum);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
