// This worker's rank in the job, and the few exchanges it needs in addition to XGBoost's own.
#pragma once

#include <cstdint>
#include <string>

namespace warren::xgb_train {

/// Joins the job given by DMLC_TRACKER_URI and DMLC_TRACKER_PORT through XGBoost's own communicator, so that
/// training and these calls share its links. Without DMLC_TRACKER_URI, processes started by mpirun or srun
/// join each other if XGBoost communicates through Warren's engine; otherwise, and under torchrun, Join
/// throws. A process without a launcher is in no job: its rank is 0, and Size() is 1.
///
/// Leave() leaves the job in an orderly way. A worker that fails must not call it, or the tracker would count
/// the worker as done. Without Leave(), the broken links make the other workers fail.
///
/// Calls are collective, except Rank, InJob, Size, IsRoot and Print: every worker makes them in the same
/// order. They throw std::runtime_error on failure.
class Communicator {
 public:
  static Communicator Join();
  void Leave();

  int Rank() const { return rank_; }
  int Size() const { return size_; }
  /// Whether this process is in a job, even one with a single worker.
  bool InJob() const { return joined_; }
  bool IsRoot() const { return rank_ == 0; }

  /// Prints a line: through the tracker in a job, otherwise to standard output.
  void Print(const std::string& line);
  /// Replaces every worker's bytes with the bytes of rank `root`.
  void Broadcast(std::string& bytes, int root = 0);
  /// Returns the sum (mod 2^64) over all workers.
  uint64_t Sum(uint64_t value);
  /// Returns the maximum over all workers.
  uint64_t Max(uint64_t value);
  /// Returns all workers' bytes in rank order on rank 0; the result on other ranks is empty.
  std::string GatherToRoot(const std::string& bytes);

 private:
  int rank_ = 0;
  int size_ = 1;
  bool joined_ = false;
};

}  // namespace warren::xgb_train
