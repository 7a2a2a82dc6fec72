// Ranks as threads of one process, each with the engine's own communicator. TCP links use the loopback
// interface.
#pragma once

#include <barrier>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rabit_engine/bootstrap/bootstrap.h"
#include "rabit_engine/engine/native_communicator.h"
#include "tests/rabit_engine/base/on_threads.h"

namespace warren::testing {

class ThreadWorld {
 public:
  explicit ThreadWorld(int size) : size_(size), records_(static_cast<std::size_t>(size)), barrier_(size) {}

  /// Runs `function` on all ranks in parallel and waits for all; rethrows the error of the lowest rank that
  /// failed.
  void Run(const Settings& settings, const std::function<void(NativeCommunicator&)>& function) {
    Run([&settings](int) { return settings; }, function);
  }
  /// Like the function above, with separate settings for each rank.
  void Run(const std::function<Settings(int rank)>& settings_of,
           const std::function<void(NativeCommunicator&)>& function) {
    OnThreads(size_, [&](int rank) {
      Listening listening{tcp::ListenAnywhere(), {}};
      listening.addresses = tcp::ListenAddresses(listening.socket.fd(), "127.0.0.1");
      NativeCommunicator communicator(std::make_unique<ThreadBootstrap>(*this, rank), std::move(listening),
                                      settings_of(rank));
      function(communicator);
      communicator.Finalize();
    });
  }

 private:
  class ThreadBootstrap final : public Bootstrap {
   public:
    ThreadBootstrap(ThreadWorld& world, int rank) : world_(world), rank_(rank) {}
    int rank() const override { return rank_; }
    int world_size() const override { return world_.size_; }
    std::vector<std::string> Allgather(const std::string& record) override {
      world_.records_[static_cast<std::size_t>(rank_)] = record;
      world_.barrier_.arrive_and_wait();
      std::vector<std::string> all = world_.records_;
      world_.barrier_.arrive_and_wait();
      return all;
    }
    void Print(const std::string&) override {}
    void Shutdown() override {}

   private:
    ThreadWorld& world_;
    int rank_;
  };

  int size_;
  std::vector<std::string> records_;
  std::barrier<> barrier_;
};

}  // namespace warren::testing
