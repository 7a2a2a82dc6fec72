#include "rabit_engine/base/communicator.h"

#include <fmt/format.h>

#include <vector>

#include "rabit_engine/base/error.h"
#include "rabit_engine/base/slices.h"

namespace warren {

void Communicator::Allgather(void* buffer, std::size_t total, std::size_t begin, std::size_t end) {
  if (begin > end || end > total) {
    throw Misuse(fmt::format("rank {}: allgather was given the slice {} to {} of {} bytes", rank(), begin,
                             end, total));
  }
  const std::vector<Slice> slices = GatherSlices(*this, {total, begin, end});
  const std::vector<std::size_t> offsets = JoinedOffsets(slices, total);
  if (offsets.size() > slices.size()) return Allgather(buffer, offsets);
  const std::size_t peer = offsets.size() - 1;
  const Slice& slice = slices[peer];
  throw Misuse(
      fmt::format("rank {}: allgather of {} bytes: rank {} brings bytes {} to {} of {}; slices join in the "
                  "order of the ranks, so it was expected to begin at {}, and the last to end at the total",
                  rank(), total, peer, slice.begin, slice.end, slice.total, offsets.back()));
}

}  // namespace warren
