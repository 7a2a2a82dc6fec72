// What all ranks have agreed to run, in the same order on all of them, and how it is packed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "rabit_engine/coordinator/request.h"

namespace warren::coordinator {

/// Something agreed on, by all ranks in the same order.
struct Ready {
  std::shared_ptr<const Request> request;
  std::string error;  ///< it ends with this, and is not run
};

class ReadyList {
 public:
  /// Behind all of the same priority.
  void Add(Ready ready);
  bool empty() const { return ready_.empty(); }
  /// The first, and with it, where that is an allreduce with an operation of the engine's, all others of its
  /// type and operation that fit into `fusion_bytes` together, in order. The rest stays.
  std::vector<Ready> TakeBatch(std::uint64_t fusion_bytes);

 private:
  std::deque<Ready> ready_;
};

}  // namespace warren::coordinator
