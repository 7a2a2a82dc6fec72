// Messages between any members of a group. All members have the whole list, so no lengths need to be
// exchanged.
#pragma once

#include <cstddef>
#include <span>

#include "rabit_engine/collective/peer_group.h"

namespace warren {

struct PlannedMessage {
  int from = -1;
  int to = -1;
  std::size_t bytes = 0;
  const void* send = nullptr;  ///< the data; only used by the member `from`
  void* receive = nullptr;     ///< the destination; only used by the member `to`
};

namespace collective {

/// Sends the messages. Every member passes the same list, with its own pointers in its own messages. No
/// message goes from a member to itself. All messages travel concurrently; each member handles only its own.
void ExchangeMessages(PeerGroup& group, std::span<const PlannedMessage> messages);

}  // namespace collective
}  // namespace warren
