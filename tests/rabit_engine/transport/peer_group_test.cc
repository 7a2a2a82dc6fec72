// Two or three members, each in a thread, over Unix socket pairs.
#include "rabit_engine/collective/peer_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "rabit_engine/base/error.h"
#include "rabit_engine/reduce/reduction.h"
#include "rabit_engine/transport/tcp/tcp_transport.h"
#include "tests/rabit_engine/base/on_threads.h"

namespace warren {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// All ranks of a small world, each linked to every other rank.
class World {
 public:
  explicit World(int size) {
    for (int rank = 0; rank < size; ++rank) {
      ranks_.push_back(std::make_unique<TcpTransport>(rank, size, -1, std::vector<std::vector<std::string>>(),
                                                      tcp::LinkKey{}, TcpOptions()));
    }
    for (int a = 0; a < size; ++a) {
      for (int b = a + 1; b < size; ++b) {
        int sockets[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) throw std::bad_alloc();
        ranks_[a]->Adopt(b, tcp::Stream(tcp::Socket(sockets[0])));
        ranks_[b]->Adopt(a, tcp::Stream(tcp::Socket(sockets[1])));
      }
    }
  }
  TcpTransport& operator[](int rank) { return *ranks_[rank]; }
  void OnAll(const std::function<void(TcpTransport&)>& function) {
    OnThreads(static_cast<int>(ranks_.size()), [&](int rank) { function(*ranks_[rank]); });
  }

 private:
  std::vector<std::unique_ptr<TcpTransport>> ranks_;
};

const std::vector<int> kTwo{0, 1};

CallTag Tag(std::uint32_t element_bytes = 1) {
  CallTag tag;
  tag.sequence = 7;
  tag.collective = Collective::kAllreduce;
  tag.type = static_cast<std::uint8_t>(DataType::kFloat);
  tag.operation = static_cast<std::uint8_t>(ReduceOp::kSum);
  tag.count = 12;
  tag.element_bytes = element_bytes;
  return tag;
}

CallTag BroadcastTag() {
  CallTag tag;
  tag.sequence = 7;
  tag.collective = Collective::kBroadcast;
  tag.count = 40;
  return tag;
}

Clock::time_point Soon() {
  return Clock::now() + seconds(10);
}

std::vector<std::uint8_t> Pattern(std::size_t bytes, int seed) {
  std::vector<std::uint8_t> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    data[i] = static_cast<std::uint8_t>((i + static_cast<std::size_t>(seed)) * 2654435761u >> 13);
  }
  return data;
}

Receive Into(int peer, void* data, std::size_t bytes) {
  return {peer, data, bytes, {}};
}

void SendTo(PeerGroup& group, int peer, const void* data, std::size_t bytes) {
  const Send send{peer, data, bytes};
  group.Exchange({&send, 1}, {});
}

void ReceiveFrom(PeerGroup& group, int peer, void* data, std::size_t bytes) {
  const Receive receive = Into(peer, data, bytes);
  group.Exchange({}, {&receive, 1});
}

void Swap(PeerGroup& group, int peer, const void* sent, void* received, std::size_t bytes) {
  const Send send{peer, sent, bytes};
  const Receive receive = Into(peer, received, bytes);
  group.Exchange({&send, 1}, {&receive, 1});
}

class MessageSize : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(AcrossTheBuffers, MessageSize,
                         testing::Values(1, 8, 2000, 4096, 8168, 8169, 8192, 100'000, 5'000'001));

TEST_P(MessageSize, BothDirectionsMoveAtOnce) {
  World world(2);
  const std::size_t bytes = GetParam();
  world.OnAll([&](TcpTransport& transport) {
    const int me = transport.rank();
    const auto mine = Pattern(bytes, me);
    std::vector<std::uint8_t> theirs(bytes);
    for (int call = 0; call < 3; ++call) {
      PeerGroup group(transport, kTwo, me, Tag(), Soon());
      for (int step = 0; step < 2; ++step) {
        std::fill(theirs.begin(), theirs.end(), std::uint8_t{0});
        Swap(group, 1 - me, mine.data(), theirs.data(), bytes);
        EXPECT_TRUE(theirs == Pattern(bytes, 1 - me));
      }
    }
  });
}

struct Pieces {
  std::uint32_t element_bytes;
  std::size_t count;
};
class PieceSize : public testing::TestWithParam<Pieces> {};
INSTANTIATE_TEST_SUITE_P(Elements, PieceSize,
                         testing::Values(Pieces{1, 1}, Pieces{4, 1'000'000}, Pieces{12, 300'001},
                                         Pieces{1000, 3000}, Pieces{300'000, 9}));

TEST_P(PieceSize, PiecesAreWholeElementsInOrderAndAligned) {
  World world(2);
  const auto [element, count] = GetParam();
  const std::size_t bytes = element * count;
  const auto sent = Pattern(bytes, 3);
  world.OnAll([&, element = element](TcpTransport& transport) {
    PeerGroup group(transport, kTwo, transport.rank(), Tag(element), Soon());
    if (transport.rank() == 0) return SendTo(group, 1, sent.data(), bytes);
    std::vector<std::uint8_t> received;
    Receive receive = Into(0, nullptr, bytes);
    receive.consume = [&](const std::byte* piece, std::size_t offset, std::size_t piece_bytes) {
      EXPECT_EQ(offset, received.size());
      EXPECT_GT(piece_bytes, 0U);
      EXPECT_EQ(piece_bytes % element, 0U);
      EXPECT_LE(piece_bytes, std::max<std::size_t>(element, 128 << 10));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(piece) % 64, 0U);
      const auto* begin = reinterpret_cast<const std::uint8_t*>(piece);
      received.insert(received.end(), begin, begin + piece_bytes);
    };
    group.Exchange({}, {&receive, 1});
    EXPECT_TRUE(received == sent);
  });
}

TEST(PeerGroup, TwoMessagesInPiecesAtOnceDoNotMix) {
  World world(3);
  const std::vector<int> members{0, 1, 2};
  const std::size_t bytes = 1'200'000;
  world.OnAll([&](TcpTransport& transport) {
    PeerGroup group(transport, members, transport.rank(), Tag(8), Soon());
    const auto mine = Pattern(bytes, transport.rank());
    if (transport.rank() != 0) return SendTo(group, 0, mine.data(), bytes);
    std::vector<std::uint8_t> received[3];
    std::vector<Receive> receives;
    for (const int peer : {1, 2}) {
      receives.push_back(Into(peer, nullptr, bytes));
      receives.back().consume = [&received, peer](const std::byte* piece, std::size_t, std::size_t count) {
        const auto* begin = reinterpret_cast<const std::uint8_t*>(piece);
        received[peer].insert(received[peer].end(), begin, begin + count);
      };
    }
    group.Exchange({}, receives);
    for (const int peer : {1, 2}) EXPECT_TRUE(received[peer] == Pattern(bytes, peer)) << peer;
  });
}

TEST(PeerGroup, MessagesToOneMemberKeepTheirOrderWithinACall) {
  World world(2);
  world.OnAll([&](TcpTransport& transport) {
    const int me = transport.rank();
    PeerGroup group(transport, kTwo, me, Tag(), Soon());
    const auto mine = Pattern(3'000'000, me);
    const Send sends[] = {
        {1 - me, mine.data(), 2'000'000}, {1 - me, nullptr, 0}, {1 - me, mine.data() + 2'000'000, 1'000'000}};
    std::vector<std::uint8_t> theirs(3'000'000);
    const Receive receives[] = {Into(1 - me, theirs.data(), 1'500'000),
                                Into(1 - me, theirs.data() + 1'500'000, 1'500'000)};
    group.Exchange(sends, receives);
    EXPECT_TRUE(theirs == Pattern(3'000'000, 1 - me));
  });
}

TEST(PeerGroup, MembersAreNumberedByTheGroupNotByTheWorld) {
  World world(3);
  const std::vector<int> members{2, 0};
  int value = 0;
  std::thread other([&] {
    PeerGroup group(world[0], members, 1, Tag(), Soon());
    const int sent = 42;
    const int peers[] = {0};
    group.Connect(peers);
    SendTo(group, 0, &sent, sizeof sent);
  });
  PeerGroup group(world[2], members, 0, Tag(), Soon());
  EXPECT_EQ(group.rank_of(1), 0);
  EXPECT_EQ(group.size(), 2);
  ReceiveFrom(group, 1, &value, sizeof value);
  EXPECT_EQ(value, 42);
  other.join();
}

TEST(PeerGroup, AnEmptyMessageWaitsForThePeer) {
  World world(2);
  std::atomic<bool> came{false};
  std::thread late([&] {
    std::this_thread::sleep_for(milliseconds(100));
    came = true;
    PeerGroup group(world[1], kTwo, 1, Tag(), Soon());
    SendTo(group, 0, nullptr, 0);
  });
  PeerGroup group(world[0], kTwo, 0, Tag(), Soon());
  ReceiveFrom(group, 1, nullptr, 0);
  EXPECT_TRUE(came);
  late.join();
}

TEST(PeerGroup, TwoDifferentCallsAreMisuseOnBothSides) {
  World world(2);
  const std::string expected[] = {
      "rank 0 calls allreduce of 12 float, sum (call 7) where rank 1 calls broadcast of 40 bytes from root 0 (call 7)",
      "rank 1 calls broadcast of 40 bytes from root 0 (call 7) where rank 0 calls allreduce of 12 float, sum (call 7)"};
  world.OnAll([&](TcpTransport& transport) {
    const int me = transport.rank();
    char data[48] = {};
    PeerGroup group(transport, kTwo, me, me == 0 ? Tag(4) : BroadcastTag(), Soon());
    EXPECT_THAT([&] { Swap(group, 1 - me, data, data, me == 0 ? 48 : 40); },
                ThrowsMessage<Misuse>(HasSubstr(expected[me])));
  });
}

TEST(PeerGroup, ADifferenceThatTheDescriptionsHideIsSpelledOut) {
  World world(2);
  world.OnAll([&](TcpTransport& transport) {
    const int me = transport.rank();
    CallTag tag = Tag(4);
    tag.algorithm = static_cast<std::uint8_t>(3 + me);
    PeerGroup group(transport, kTwo, me, tag, Soon());
    EXPECT_THAT([&] { Swap(group, 1 - me, nullptr, nullptr, 0); },
                ThrowsMessage<Misuse>(AllOf(HasSubstr("algorithm 3"), HasSubstr("algorithm 4"))));
  });
}

TEST(PeerGroup, OfTwoDifferentCallsTheOneThatOnlySendsEndsToo) {
  World world(2);
  std::atomic<int> ended{0};
  world.OnAll([&](TcpTransport& transport) {
    const int me = transport.rank();
    std::vector<char> data(50'000'000);  // more than any buffer holds
    PeerGroup group(transport, kTwo, me, me == 0 ? Tag() : BroadcastTag(), Soon());
    try {
      if (me == 0) SendTo(group, 1, data.data(), data.size());
      if (me == 1) ReceiveFrom(group, 0, data.data(), data.size());
    } catch (const Misuse&) {
      EXPECT_EQ(me, 1);
      ++ended;
    } catch (const LostPeer& lost) {
      EXPECT_EQ(me, 0);
      EXPECT_EQ(lost.rank(), 1);
      ++ended;
    }
  });
  EXPECT_EQ(ended, 2);
}

TEST(PeerGroup, ADeadlineThatPassesIsTimedOut) {
  World world(2);
  PeerGroup group(world[0], kTwo, 0, Tag(), Clock::now() + milliseconds(50));
  int value = 0;
  EXPECT_THROW(ReceiveFrom(group, 1, &value, sizeof value), TimedOut);
}

TEST(Describe, SaysWhatACallIs) {
  CallTag tag = Tag(4);
  EXPECT_EQ(Describe(tag), "allreduce of 12 float, sum (call 7)");
  tag.collective = Collective::kReduce;
  tag.root = 2;
  EXPECT_EQ(Describe(tag), "reduce of 12 float, sum to root 2 (call 7)");
  tag.type = 0xff;
  tag.operation = 0xff;
  tag.element_bytes = 24;
  EXPECT_EQ(Describe(tag), "reduce of 12 elements of 24 bytes, custom operation to root 2 (call 7)");
  tag.collective = Collective::kAllgather;
  EXPECT_EQ(Describe(tag), "allgather of 12 bytes (call 7)");
  tag.collective = Collective::kBarrier;
  EXPECT_EQ(Describe(tag), "barrier (call 7)");
  tag.collective = static_cast<Collective>(200);
  EXPECT_EQ(Describe(tag), "unknown collective (call 7)");
}

}  // namespace
}  // namespace warren
