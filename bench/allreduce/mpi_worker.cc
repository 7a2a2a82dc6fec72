// allreduce-openmpi, allreduce-mpich, allreduce-impi and so on: an MPI rank. The same source is compiled with
// the headers of each MPI.
#include <mpi.h>

#include <cstddef>
#include <memory>

#include "bench/allreduce/world.h"

namespace {

/// MPI itself aborts the whole job if a call fails (MPI_ERRORS_ARE_FATAL), so no result is checked.
class MpiWorld : public warren::bench::World {
 public:
  MpiWorld() { MPI_Init(nullptr, nullptr); }
  ~MpiWorld() override { MPI_Finalize(); }
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  int rank() const override {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
  }
  int size() const override {
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
  }
  void Allreduce(float* data, std::size_t count) override {
    MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
  void Broadcast(void* data, std::size_t bytes, int root) override {
    MPI_Bcast(data, static_cast<int>(bytes), MPI_BYTE, root, MPI_COMM_WORLD);
  }
  void Allgather(void* data, std::size_t bytes_each) override {
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, static_cast<int>(bytes_each), MPI_BYTE,
                  MPI_COMM_WORLD);
  }
  void ReduceScatter(float* data, std::size_t count_each) override {
    MPI_Reduce_scatter_block(MPI_IN_PLACE, data, static_cast<int>(count_each), MPI_FLOAT, MPI_SUM,
                             MPI_COMM_WORLD);
  }
  bool ReduceScattersInPlace() const override { return false; }
  void Barrier() override { MPI_Barrier(MPI_COMM_WORLD); }
  void AllToAll(const void* from, void* to, std::size_t bytes_each) override {
    MPI_Alltoall(from, static_cast<int>(bytes_each), MPI_BYTE, to, static_cast<int>(bytes_each), MPI_BYTE,
                 MPI_COMM_WORLD);
  }
  void Split(int color) override {
    MPI_Comm group = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, color, 0, &group);
    MPI_Comm_free(&group);
  }
};

}  // namespace

int main(int argc, char** argv) {
  return warren::bench::RunWorker(argc, argv, [] { return std::make_unique<MpiWorld>(); });
}
