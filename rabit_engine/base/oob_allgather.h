// What ranks tell each other out of band: before they have transports, by whatever way they found each other.
#pragma once

#include <string>
#include <vector>

namespace warren {

/// Not thread safe. Every call is made by all ranks in the same order.
class OobAllgather {
 public:
  virtual ~OobAllgather() = default;
  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  /// Every rank's record, by rank: small strings (up to some KiB each). Throws EngineError.
  virtual std::vector<std::string> Allgather(const std::string& record) = 0;
};

}  // namespace warren
