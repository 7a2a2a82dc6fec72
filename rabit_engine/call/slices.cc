#include "rabit_engine/call/slices.h"

#include <fmt/format.h>

#include <cstdint>

#include "rabit_engine/base/error.h"

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

std::vector<std::size_t> GatherOffsets(Communicator& communicator, const Slice& own) {
  const std::vector<Slice> slices = GatherSlices(communicator, own);
  std::vector<std::size_t> offsets = JoinedOffsets(slices, own.total);
  if (offsets.size() > slices.size()) return offsets;
  const std::size_t peer = offsets.size() - 1;
  const Slice& slice = slices[peer];
  throw Misuse(fmt::format(
      "rank {}: allgather of {} bytes: rank {} has bytes {} to {} of {}; "
      "slices must be contiguous in rank order, so it should begin at {}, and the last one should end at the total",
      communicator.rank(), own.total, peer, slice.begin, slice.end, slice.total, offsets.back()));
}

std::vector<std::string> AllgatherTexts(int rank, int world_size, const std::string& own,
                                        const AllgatherBytes& allgather) {
  std::vector<std::uint64_t> lengths(static_cast<std::size_t>(world_size));
  lengths[rank] = own.size();
  allgather(lengths.data(), EqualOffsets(world_size, sizeof(std::uint64_t)));
  std::vector<std::size_t> offsets{0};
  for (const std::uint64_t length : lengths) offsets.push_back(offsets.back() + length);
  std::string all(offsets.back(), '\0');
  own.copy(all.data() + offsets[rank], own.size());
  if (!all.empty()) allgather(all.data(), offsets);
  std::vector<std::string> texts;
  texts.reserve(lengths.size());
  for (std::size_t i = 0; i < lengths.size(); ++i) texts.push_back(all.substr(offsets[i], lengths[i]));
  return texts;
}

std::vector<std::string> AllgatherTexts(Communicator& communicator, const std::string& own) {
  return AllgatherTexts(
      communicator.rank(), communicator.world_size(), own,
      [&](void* buffer, std::span<const std::size_t> offsets) { communicator.Allgather(buffer, offsets); });
}

}  // namespace warren
