#include "rabit_engine/base/communicator.h"

#include <fmt/format.h>

#include <vector>

#include "rabit_engine/base/error.h"
#include "rabit_engine/base/slices.h"

namespace warren {

namespace {

[[noreturn]] void RefuseToServe(const Communicator& communicator, const char* what) {
  throw Refused(
      fmt::format("rank {}: this engine has no {}; set WARREN_ENGINE=native", communicator.rank(), what));
}

}  // namespace

void Communicator::Gather(const void*, std::size_t, void*, std::span<const std::size_t>, int) {
  RefuseToServe(*this, "gather");
}

void Communicator::Scatter(const void*, std::span<const std::size_t>, void*, std::size_t, int) {
  RefuseToServe(*this, "scatter");
}

void Communicator::AllToAll(const void*, std::span<const std::size_t>, void*, std::span<const std::size_t>) {
  RefuseToServe(*this, "all-to-all");
}

void Communicator::SendReceive(std::span<const Outbound>, std::span<const Inbound>) {
  RefuseToServe(*this, "send or receive");
}

std::unique_ptr<Communicator> Communicator::Split(int, int) {
  RefuseToServe(*this, "split");
}

std::unique_ptr<Communicator> Communicator::Group(std::span<const int>, const std::string&, OobAllgather&) {
  RefuseToServe(*this, "group creation by its members alone");
}

std::unique_ptr<TaggedMessages> Communicator::MakeMailbox() {
  RefuseToServe(*this, "mailbox");
}

int Communicator::host_of(int) const {
  RefuseToServe(*this, "knowledge of hosts");
}

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
  throw Misuse(fmt::format(
      "rank {}: allgather of {} bytes: rank {} has bytes {} to {} of {}; "
      "slices must be contiguous in rank order, so it should begin at {}, and the last one should end at the total",
      rank(), total, peer, slice.begin, slice.end, slice.total, offsets.back()));
}

}  // namespace warren
