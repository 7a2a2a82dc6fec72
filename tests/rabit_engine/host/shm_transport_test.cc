// Byte streams between the members of one host. Each member is a thread.
#include "rabit_engine/host/shm_transport.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "rabit_engine/base/error.h"
#include "tests/rabit_engine/host/shm_members.h"

namespace warren {
namespace {

using std::chrono::milliseconds;

constexpr int kWorldSize = 12;

unsigned char ByteAt(std::size_t place, int sender) {
  return static_cast<unsigned char>((place * 2654435761U >> 13) + static_cast<unsigned>(sender));
}

/// Exchanges `bytes` bytes with one peer, in pieces of random lengths.
void Trade(ShmTransport& transport, int peer, std::size_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  Link& link = transport.To(peer);
  std::vector<unsigned char> piece(200'000);
  std::size_t sent = 0;
  std::size_t received = 0;
  while (sent < bytes || received < bytes) {
    std::size_t moved = 0;
    if (sent < bytes) {
      const std::size_t length = std::min<std::size_t>(bytes - sent, 1 + random() % piece.size());
      for (std::size_t i = 0; i < length; ++i) piece[i] = ByteAt(sent + i, transport.rank());
      moved += link.TrySend(piece.data(), length);
      sent += moved;
    }
    if (received < bytes) {
      const std::size_t length = std::min<std::size_t>(bytes - received, 1 + random() % piece.size());
      const std::size_t got = link.TryReceive(piece.data(), length);
      for (std::size_t i = 0; i < got; ++i) {
        if (piece[i] != ByteAt(received + i, peer)) throw EngineError("byte " + std::to_string(received + i));
      }
      received += got;
      moved += got;
    }
    if (moved == 0) {
      const Interest interest{peer, sent < bytes, received < bytes};
      transport.Wait({&interest, 1}, kNoDeadline);
    }
  }
}

TEST(ShmTransport, CarriesMoreThanARingHoldsInOrderBothWays) {
  Members members(3);
  members.OnAll([&](int me) {
    ShmTransport transport(members[me], kWorldSize);
    for (const auto& [a, b] : {std::pair{0, 1}, std::pair{1, 2}, std::pair{0, 2}}) {
      if (me != a && me != b) continue;
      const int peer = Members::RankOf(me == a ? b : a);
      const int peers[] = {peer};
      transport.Connect(peers);
      Trade(transport, peer, 3'000'000, static_cast<unsigned>(me));
    }
  });
}

TEST(ShmTransport, ReachesTheRanksOfItsHostAndNoOthers) {
  Members members(2);
  ShmTransport transport(members[0], kWorldSize);
  EXPECT_TRUE(transport.Reaches(Members::RankOf(1)));
  EXPECT_FALSE(transport.Reaches(0));
  EXPECT_FALSE(transport.Reaches(-1));
  EXPECT_FALSE(transport.Reaches(kWorldSize));
  EXPECT_THROW(transport.To(0), EngineError);
}

TEST(ShmTransport, DeliversWhatWasSentBeforeTheEnd) {
  Members members(2);
  ShmTransport receiver(members[0], kWorldSize);
  {
    ShmTransport sender(members[1], kWorldSize);
    EXPECT_EQ(sender.To(Members::RankOf(0)).TrySend("last words", 10), 10U);
  }
  members.End(1);
  const Interest interest{Members::RankOf(1), false, true};
  receiver.Wait({&interest, 1}, kNoDeadline);
  char text[10];
  EXPECT_EQ(receiver.To(Members::RankOf(1)).TryReceive(text, 10), 10U);
  EXPECT_THROW(receiver.Wait({&interest, 1}, kNoDeadline), LostPeer);
}

TEST(ShmTransport, ExpectsPeersToLeaveOnlyWhenToldTo) {
  Members members(3);
  members.End(2);
  const Interest other{Members::RankOf(1), false, true};
  ShmTransport transport(members[0], kWorldSize);
  transport.ExpectPeersToLeave();
  EXPECT_THROW(transport.Wait({&other, 1}, Clock::now() + milliseconds(60)), TimedOut) << "2 is not awaited";
  const Interest gone{Members::RankOf(2), false, true};
  EXPECT_THROW(transport.Wait({&gone, 1}, Clock::now() + milliseconds(60)), LostPeer);
}

TEST(ShmTransport, WakesASleeperByItsDoorbell) {
  // As in Waiter.HearsEveryBell, each missed bell would cost 20 ms.
  constexpr int kTurns = 20'000;
  Members members(2);
  members.OnAll([&](int me) {
    members[me].SetOversubscribed(true);
    ShmTransport transport(members[me], kWorldSize);
    const int peer = Members::RankOf(1 - me);
    const Interest interest{peer, false, true};
    for (int turn = 0; turn < kTurns; ++turn) {
      char token = 'x';
      if (me == 0) transport.To(peer).TrySend(&token, 1);
      while (transport.To(peer).TryReceive(&token, 1) == 0) transport.Wait({&interest, 1}, kNoDeadline);
      if (me == 1) transport.To(peer).TrySend(&token, 1);
    }
  });
}

}  // namespace
}  // namespace warren
