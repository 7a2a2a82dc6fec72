// The engine over MPI: a Communicator whose collectives are MPI's own.
//
// A reduction uses MPI's operation of the same name if both are defined alike. Other reductions (the caller's
// functions, and the maximum and minimum of floating-point numbers, for which MPI does not define the
// treatment of NaN and signed zeros) use a user-defined MPI operation that keeps the order of the ranks. In
// floating-point sums and products every rank obtains the same bits, but MPI chooses the order, so the last
// bits may differ from those of the native engine. Sums and products of 16-bit floats are computed by MPI in
// 32-bit floats, and rounded once.
//
// Gathers, scatters, all-to-alls and messages are sent as MPI messages, whose lengths both sides know. Each
// communicator has its own MPI communicator. Threads may use several communicators concurrently if MPI was
// initialized with MPI_THREAD_MULTIPLE (a program that initializes MPI itself decides this).
//
// There are no timeouts: collective_timeout has no effect. If a rank dies, MPI's launcher decides how the job
// ends.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rabit_engine/call/communicator.h"
#include "rabit_engine/mpi/mpi_plugin.h"
#include "rabit_engine/reduce/reduction.h"

namespace warren {

/// Whether MPI's operation of the same name has the same definition as the engine's, except for the order in
/// which the ranks' values are combined.
bool MpiHasSame(const Reduction& reduction);

class MpiCommunicator : public Communicator {
 public:
  struct Options {
    /// Prints the text that is passed to TrackerPrint; if empty, stdout is used.
    std::function<void(const std::string& text)> print;
    /// Whether the job has a tracker; such a job counts as distributed even if it has a single rank.
    bool has_tracker = false;
    /// The largest number of bytes that one MPI call may transfer: MPI's counts are ints, and not every MPI
    /// is reliable near 2 GiB.
    std::size_t max_call_bytes = std::size_t{1} << 30;
  };

  /// Opens a communicator of all MPI ranks. Throws EngineError.
  MpiCommunicator(const WarrenMpi& mpi, Options options);
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;
  /// If Finalize was not called, MPI is left initialized, so that the launcher sees a failed rank. A
  /// communicator that was split off is freed; MPI may wait until all its ranks have freed it.
  ~MpiCommunicator() override;

  int rank() const override { return rank_; }
  int world_size() const override { return world_size_; }
  bool is_distributed() const override { return world_size_ > 1 || options_.has_tracker; }
  std::string host() const override { return host_; }
  int local_rank() const override { return local_rank_; }

  void Run(const Operation& operation) override;
  std::unique_ptr<Communicator> Split(int color, int key) override;
  int host_of(int rank) const override { return hosts_[rank]; }
  int rank_in_job(int rank) const override { return members_[rank]; }
  std::string name() const override { return name_; }
  void TrackerPrint(const std::string& text) override;
  void Finalize() override;

 private:
  class Call;
  /// Constructs a communicator that was split off.
  MpiCommunicator(const MpiCommunicator& parent, WarrenMpiGroup* group, int rank, int size);
  void MeetHosts();
  bool is_world() const { return name_ == "world"; }

  /// The number of elements that fit one MPI call, at least 1. Throws Misuse if elements are empty or larger
  /// than INT_MAX bytes.
  std::size_t ElementsPerCall(const Reduction& reduction) const;
  void RequireOpen(std::string_view what) const;
  void RunAllreduce(const Operation& operation);
  void RunReduce(const Operation& operation);
  void RunReduceScatter(const Operation& operation);
  void RunBroadcast(const Operation& operation);
  void RunAllgather(const Operation& operation);
  void RunGather(const Operation& operation);
  void RunScatter(const Operation& operation);
  void RunAllToAll(const Operation& operation);
  void RunMessages(const Operation& operation);
  /// Throws EngineError unless `error` is nullptr.
  void Check(const char* error, const std::string& what) const;
  std::string Who() const;

  const WarrenMpi& mpi_;
  Options options_;
  WarrenMpiGroup* group_ = nullptr;
  int rank_ = 0;
  int world_size_ = 1;
  int local_rank_ = 0;
  std::string host_;
  std::vector<int> hosts_;    ///< by rank: the lowest rank on the same host
  std::vector<int> members_;  ///< ranks in the job
  std::string name_ = "world";
  int splits_ = 0;
};

}  // namespace warren
