// Ranks as threads of one process, each with a communicator that supports what the API tests need.
#pragma once

#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "rabit_engine/base/error.h"
#include "rabit_engine/call/communicator.h"

namespace warren::api {

struct FakeWorld {
  explicit FakeWorld(int size) : barrier(size), buffers(static_cast<std::size_t>(size)) {}
  std::barrier<> barrier;
  std::vector<char*> buffers;
};

class FakeCommunicator final : public Communicator {
 public:
  FakeCommunicator(FakeWorld* world, int rank, bool has_timeouts = false)
      : world_(world), rank_(rank), has_timeouts_(has_timeouts) {}

  int rank() const override { return rank_; }
  int world_size() const override { return static_cast<int>(world_->buffers.size()); }
  bool is_distributed() const override { return world_size() > 1; }
  std::string host() const override { return "fake"; }
  int local_rank() const override { return rank_; }

  void Run(const Operation& operation) override {
    if (operation.kind == Collective::kAllreduce && on_allreduce) {
      on_allreduce(operation.receive, operation.count, *operation.reduction);
    }
    if (operation.kind != Collective::kAllgather || operation.receive_offsets.empty()) return;
    void* const buffer = operation.receive;
    const std::span<const std::size_t> offsets = operation.receive_offsets;
    world_->buffers[static_cast<std::size_t>(rank_)] = static_cast<char*>(buffer);
    world_->barrier.arrive_and_wait();
    for (std::size_t peer = 0; peer < world_->buffers.size(); ++peer) {
      if (peer == static_cast<std::size_t>(rank_) || offsets[peer] == offsets[peer + 1]) continue;
      std::memcpy(static_cast<char*>(buffer) + offsets[peer], world_->buffers[peer] + offsets[peer],
                  offsets[peer + 1] - offsets[peer]);
    }
    world_->barrier.arrive_and_wait();
  }
  bool has_timeouts() const override { return has_timeouts_; }
  void SetCallTimeout(std::chrono::milliseconds timeout) override { call_timeout = timeout; }
  void GiveUp() noexcept override { ++times_given_up; }
  void TrackerPrint(const std::string& /*text*/) override {}
  void Finalize() override {}

  std::function<void(void*, std::size_t, const Reduction&)> on_allreduce;
  std::chrono::milliseconds call_timeout{0};
  int times_given_up = 0;

 private:
  FakeWorld* world_;
  int rank_;
  bool has_timeouts_;
};

}  // namespace warren::api
