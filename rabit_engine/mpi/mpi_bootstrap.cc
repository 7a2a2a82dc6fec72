#include "rabit_engine/mpi/mpi_bootstrap.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "rabit_engine/mpi/mpi_engine.h"

namespace warren {
namespace {

class MpiBootstrap : public Bootstrap {
 public:
  explicit MpiBootstrap(std::unique_ptr<Communicator> world) : world_(std::move(world)) {}

  int rank() const override { return world_->rank(); }
  int world_size() const override { return world_->world_size(); }

  std::vector<std::string> Allgather(const std::string& record) override {
    const std::vector<std::size_t> offsets = Offsets(record.size());
    std::string all(offsets.back(), '\0');
    std::memcpy(all.data() + offsets[rank()], record.data(), record.size());
    world_->Allgather(all.data(), offsets);
    std::vector<std::string> records;
    records.reserve(world_size());
    for (int rank = 0; rank < world_size(); ++rank) {
      records.push_back(all.substr(offsets[rank], offsets[rank + 1] - offsets[rank]));
    }
    return records;
  }

  void Print(const std::string& text) override { world_->TrackerPrint(text); }
  void Shutdown() override { world_->Finalize(); }

 private:
  /// Where each rank's record begins if they are stored one after the other.
  std::vector<std::size_t> Offsets(std::size_t own_bytes) {
    std::vector<std::size_t> lengths(world_size());
    lengths[rank()] = own_bytes;
    std::vector<std::size_t> offsets(world_size() + 1);
    for (int rank = 0; rank <= world_size(); ++rank) offsets[rank] = rank * sizeof(std::size_t);
    world_->Allgather(lengths.data(), offsets);
    offsets[0] = 0;
    for (int rank = 0; rank < world_size(); ++rank) offsets[rank + 1] = offsets[rank] + lengths[rank];
    return offsets;
  }

  std::unique_ptr<Communicator> world_;
};

}  // namespace

std::unique_ptr<Bootstrap> MakeMpiBootstrap(const Settings& settings) {
  return std::make_unique<MpiBootstrap>(JoinMpi(settings));
}

}  // namespace warren
