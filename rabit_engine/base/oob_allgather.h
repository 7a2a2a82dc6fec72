// Out-of-band communication: the exchange of records between ranks that have no transport yet.
#pragma once

#include <string>
#include <vector>

namespace warren {

/// Not thread-safe. All ranks make the same calls in the same order.
class OobAllgather {
 public:
  virtual ~OobAllgather() = default;
  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  /// Returns every rank's record, in rank order. Records are short strings (up to a few KiB each). Throws
  /// EngineError, or the exception of a function that the program has provided for the exchange.
  virtual std::vector<std::string> Allgather(const std::string& record) = 0;
};

}  // namespace warren
