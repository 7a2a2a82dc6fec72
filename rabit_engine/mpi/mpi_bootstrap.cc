#include "rabit_engine/mpi/mpi_bootstrap.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rabit_engine/call/slices.h"
#include "rabit_engine/mpi/mpi_engine.h"

namespace warren {
namespace {

class MpiBootstrap : public Bootstrap {
 public:
  explicit MpiBootstrap(std::unique_ptr<Communicator> world) : world_(std::move(world)) {}

  int rank() const override { return world_->rank(); }
  int world_size() const override { return world_->world_size(); }

  std::vector<std::string> Allgather(const std::string& record) override {
    return AllgatherTexts(*world_, record);
  }

  void Print(const std::string& text) override { world_->TrackerPrint(text); }
  void Shutdown() override { world_->Finalize(); }

 private:
  std::unique_ptr<Communicator> world_;
};

}  // namespace

std::unique_ptr<Bootstrap> MakeMpiBootstrap(const Settings& settings) {
  return std::make_unique<MpiBootstrap>(JoinMpi(settings));
}

}  // namespace warren
