// The named operations that all ranks have agreed to run, in the same order on every rank, and their division
// into batches.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "rabit_engine/coordinator/request.h"

namespace warren::coordinator {

/// A named operation that all ranks have agreed on.
struct Ready {
  std::shared_ptr<const Request> request;
  std::string error;  ///< if not empty, the operation ends with this error and is not run
};

class ReadyList {
 public:
  /// Inserts `ready` after all entries of the same or a higher priority.
  void Add(Ready ready);
  bool empty() const { return ready_.empty(); }
  /// Removes and returns the first entry, if any. If it is an allreduce with a built-in operation, also
  /// takes, in order, those other allreduces of the same type and operation (averages only with averages)
  /// that still fit into `fusion_bytes`.
  std::vector<Ready> TakeBatch(std::uint64_t fusion_bytes);

 private:
  std::deque<Ready> ready_;
};

}  // namespace warren::coordinator
