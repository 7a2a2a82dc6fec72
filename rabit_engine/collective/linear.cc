#include "rabit_engine/collective/linear.h"

#include <vector>

#include "rabit_engine/collective/slices.h"
#include "rabit_engine/collective/vector_view.h"

namespace warren::collective {

void GatherLinear(PeerGroup& group, const void* data, std::size_t bytes, void* buffer,
                  std::span<const std::size_t> offsets, int root) {
  if (group.index() != root) {
    const Send send{root, data, bytes};
    group.Connect({&root, 1});
    return group.Exchange({&send, 1}, {});
  }
  const std::vector<int> others = group.Others();
  const VectorView all(buffer, 1);
  std::vector<Receive> receives;
  receives.reserve(others.size());
  for (const int peer : others) receives.push_back(all.ReceiveInto(peer, Slice(offsets, peer)));
  group.Connect(others);
  group.Exchange({}, receives);
}

void ScatterLinear(PeerGroup& group, const void* buffer, std::span<const std::size_t> offsets, void* data,
                   std::size_t bytes, int root) {
  if (group.index() != root) {
    const Receive receive{root, data, bytes, {}};
    group.Connect({&root, 1});
    return group.Exchange({}, {&receive, 1});
  }
  const std::vector<int> others = group.Others();
  const auto* all = static_cast<const std::byte*>(buffer);
  std::vector<Send> sends;
  sends.reserve(others.size());
  for (const int peer : others) {
    const Range slice = Slice(offsets, peer);
    sends.push_back({peer, all + slice.begin, slice.size()});
  }
  group.Connect(others);
  group.Exchange(sends, {});
}

}  // namespace warren::collective
