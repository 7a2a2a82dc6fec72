// allreduce-warren: a Warren rank. Finds the tracker by DMLC_TRACKER_URI and DMLC_TRACKER_PORT; WARREN_*
// settings apply.
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "bench/allreduce/world.h"
#include "rabit_engine/engine/join.h"

namespace {

using namespace warren;

class WarrenWorld : public bench::World {
 public:
  explicit WarrenWorld(std::unique_ptr<Communicator> communicator) : communicator_(std::move(communicator)) {}
  ~WarrenWorld() override { communicator_->Finalize(); }
  WarrenWorld(const WarrenWorld&) = delete;
  WarrenWorld& operator=(const WarrenWorld&) = delete;

  int rank() const override { return communicator_->rank(); }
  int size() const override { return communicator_->world_size(); }
  void Allreduce(float* data, std::size_t count) override { communicator_->Allreduce(data, count, sum_); }
  void Broadcast(void* data, std::size_t bytes, int root) override {
    communicator_->Broadcast(data, bytes, root);
  }
  void Allgather(void* data, std::size_t bytes_each) override {
    communicator_->Allgather(data, Slices(bytes_each));
  }
  void ReduceScatter(float* data, std::size_t count_each) override {
    communicator_->ReduceScatter(data, Slices(count_each), sum_);
  }
  void Barrier() override { communicator_->Barrier(); }
  void AllToAll(const void* from, void* to, std::size_t bytes_each) override {
    const std::vector<std::size_t>& slices = Slices(bytes_each);
    communicator_->AllToAll(from, slices, to, slices);
  }
  void Split(int color) override { communicator_->Split(color, 0); }

 private:
  const std::vector<std::size_t>& Slices(std::size_t each) {
    offsets_.resize(size() + 1);
    for (std::size_t rank = 0; rank < offsets_.size(); ++rank) offsets_[rank] = rank * each;
    return offsets_;
  }

  std::unique_ptr<Communicator> communicator_;
  Reduction sum_ = Reduction::Typed(DataType::kFloat, ReduceOp::kSum);
  std::vector<std::size_t> offsets_;
};

}  // namespace

int main(int argc, char** argv) {
  return bench::RunWorker(argc, argv, [] { return std::make_unique<WarrenWorld>(Join(ReadSettings({}))); });
}
