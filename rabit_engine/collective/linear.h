// Gather and scatter with direct messages between the root and all other members: all data is sent once, and
// the root's network link is the bottleneck. The length of a slice need only be known to the root and to the
// member that sends or receives it.
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
