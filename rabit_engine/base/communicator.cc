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
  const auto offsets = JoinedOffsets(slices, total);
  if (offsets) return Allgather(buffer, *offsets);
  std::size_t joint = 0;
  for (std::size_t peer = 0; peer < slices.size(); ++peer) {
    const Slice& slice = slices[peer];
    const bool is_last = peer + 1 == slices.size();
    if (slice.total != total || slice.begin != joint || (is_last && slice.end != total)) {
      throw Misuse(fmt::format(
          "rank {}: allgather of {} bytes: rank {} brings bytes {} to {} of {}; slices join in the "
          "order of the ranks, so it was expected to begin at {}, and the last to end at the total",
          rank(), total, peer, slice.begin, slice.end, slice.total, joint));
    }
    joint = slice.end;
  }
}

}  // namespace warren
