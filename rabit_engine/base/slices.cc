#include "rabit_engine/base/slices.h"

namespace warren {

std::vector<std::size_t> EqualOffsets(int size, std::size_t bytes) {
  std::vector<std::size_t> offsets(static_cast<std::size_t>(size) + 1);
  for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] = i * bytes;
  return offsets;
}

std::vector<Slice> GatherSlices(Communicator& communicator, const Slice& own) {
  std::vector<Slice> slices(static_cast<std::size_t>(communicator.world_size()));
  slices[static_cast<std::size_t>(communicator.rank())] = own;
  communicator.Allgather(slices.data(), EqualOffsets(communicator.world_size(), sizeof(Slice)));
  return slices;
}

std::vector<std::size_t> JoinedOffsets(std::span<const Slice> slices, std::size_t total, bool end_is_size) {
  std::vector<std::size_t> offsets{0};
  for (const Slice& slice : slices) {
    const std::size_t end = end_is_size ? slice.begin + slice.end : slice.end;
    const bool is_last = offsets.size() == slices.size();
    const bool fits = end >= slice.begin && end <= total && (!is_last || end == total);
    if (slice.total != total || slice.begin != offsets.back() || !fits) break;
    offsets.push_back(end);
  }
  return offsets;
}

}  // namespace warren
