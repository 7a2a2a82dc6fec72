// Out-of-band communication: how ranks exchange records before they have transports.
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
  /// EngineError.
  virtual std::vector<std::string> Allgather(const std::string& record) = 0;
};

}  // namespace warren
