// The bootstrap for a world of one rank, which has no peers to find.
#pragma once

#include "rabit_engine/bootstrap/bootstrap.h"

namespace warren {

class NoneBootstrap final : public Bootstrap {
 public:
  int rank() const override { return 0; }
  int world_size() const override { return 1; }
  std::vector<std::string> Allgather(const std::string& record) override { return {record}; }
  void Print(const std::string& text) override;
  void Shutdown() override {}
};

}  // namespace warren
