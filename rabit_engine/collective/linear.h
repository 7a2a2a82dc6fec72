// One root and all others, without anybody between: each message goes once, and the root's link is what
// bounds it. For slices that only their two ranks know the length of.
#pragma once

#include <cstddef>
#include <span>

#include "rabit_engine/collective/peer_group.h"

namespace warren::collective {

void GatherLinear(PeerGroup& group, const void* data, std::size_t bytes, void* buffer,
                  std::span<const std::size_t> offsets, int root);
void ScatterLinear(PeerGroup& group, const void* buffer, std::span<const std::size_t> offsets, void* data,
                   std::size_t bytes, int root);

}  // namespace warren::collective
