#include "rabit_engine/collective/exchange.h"

#include <vector>

namespace warren::collective {

void ExchangeMessages(PeerGroup& group, std::span<const PlannedMessage> messages) {
  std::vector<Send> sends;
  std::vector<Receive> receives;
  std::vector<int> peers;
  for (const PlannedMessage& message : messages) {
    if (message.bytes == 0) continue;
    if (message.from == group.index()) {
      sends.push_back({message.to, message.send, message.bytes});
      peers.push_back(message.to);
    } else if (message.to == group.index()) {
      receives.push_back({message.from, message.receive, message.bytes, {}});
      peers.push_back(message.from);
    }
  }
  group.Connect(peers);
  group.Exchange(sends, receives);
}

}  // namespace warren::collective
