// This worker's place in the job: who it is, and the few exchanges it needs beside XGBoost's own.
#pragma once

#include <cstdint>
#include <string>

namespace warren::xgb_train {

/// Joins the job that DMLC_TRACKER_URI and DMLC_TRACKER_PORT name, through XGBoost's own communicator, so
/// that training and these calls share its links. Without DMLC_TRACKER_URI, processes of mpirun and srun join
/// each other if XGBoost's communication goes over Warren's engine; otherwise Join throws. A process that no
/// launcher started is a job of one.
///
/// Leave() ends the membership in order. A worker that fails must not call it: the tracker would count
/// the worker as done. The broken links then end the others.
///
/// Calls are collective except Rank, InJob, Size and Print: every worker makes them in the same order. All
/// throw std::runtime_error.
class Communicator {
 public:
  static Communicator Join();
  void Leave();

  int Rank() const { return rank_; }
  int Size() const { return size_; }
  /// Whether there is a job, perhaps of one worker.
  bool InJob() const { return joined_; }
  bool IsRoot() const { return rank_ == 0; }

  /// Shows a line once, wherever it is called: through the tracker, or on standard output without one.
  void Print(const std::string& line);
  /// Gives every worker the bytes that `root` holds. The others' argument is replaced.
  void Broadcast(std::string& bytes, int root = 0);
  /// The sum (mod 2^64) over all workers.
  uint64_t Sum(uint64_t value);
  /// The greatest of all workers'.
  uint64_t Max(uint64_t value);
  /// Rank 0's result: all workers' bytes in the order of ranks. The others get nothing of use.
  std::string GatherToRoot(const std::string& bytes);

 private:
  int rank_ = 0;
  int size_ = 1;
  bool joined_ = false;
};

}  // namespace warren::xgb_train
