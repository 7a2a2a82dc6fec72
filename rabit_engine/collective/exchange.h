// Messages from any rank to any other. All members know all of them, so nobody has to ask.
#pragma once

#include <cstddef>
#include <span>

#include "rabit_engine/collective/peer_group.h"

namespace warren {

struct Message {
  int from = -1;
  int to = -1;
  std::size_t bytes = 0;
  const void* send = nullptr;  ///< where it is, on `from`
  void* receive = nullptr;     ///< where it goes, on `to`
};

namespace collective {

/// Every member gives the same list, with its own pointers in its own messages. None goes from a member to
/// itself. All travel at once; each member sends and receives its own only.
void ExchangeMessages(PeerGroup& group, std::span<const Message> messages);

}  // namespace collective
}  // namespace warren
