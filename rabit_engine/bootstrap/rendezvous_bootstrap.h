// The bootstrap for ranks that can already exchange strings, through a key-value store or another library's
// communicator.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rabit_engine/bootstrap/bootstrap.h"

namespace warren {

class RendezvousBootstrap final : public Bootstrap {
 public:
  /// A collective call that returns the `text` of every rank, in rank order. May throw any exception.
  using Exchange = std::function<std::vector<std::string>(const std::string& text)>;

  RendezvousBootstrap(int rank, int world_size, Exchange exchange);
  int rank() const override { return rank_; }
  int world_size() const override { return world_size_; }
  std::vector<std::string> Allgather(const std::string& record) override;
  void Print(const std::string& text) override;
  void Shutdown() override {}

 private:
  int rank_;
  int world_size_;
  Exchange exchange_;
};

}  // namespace warren
