// Messages with tags over shared memory and TCP. The ranks are threads, so that the thread sanitizer can find
// races.
#include "rabit_engine/engine/mailbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "rabit_engine/base/error.h"
#include "rabit_engine/base/tagged_messages.h"
#include "rabit_engine/transport/transport.h"
#include "tests/rabit_engine/api/fake_world.h"
#include "tests/rabit_engine/engine/thread_world.h"

namespace warren {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Property;
using ::testing::Throws;
using ::testing::ThrowsMessage;

/// The future outcome of a message.
class Outcome {
 public:
  TaggedMessages::Ended Function() {
    return [promise = promise_](const std::exception_ptr& error, int from) {
      error ? promise->set_exception(error) : promise->set_value(from);
    };
  }
  /// Returns the sender's rank. Throws the message's error.
  int Wait() { return future_.get(); }

 private:
  std::shared_ptr<std::promise<int>> promise_ = std::make_shared<std::promise<int>>();
  std::future<int> future_ = promise_->get_future();
};

Outcome Send(TaggedMessages& messages, int to, std::uint64_t tag, const std::vector<std::uint8_t>& data) {
  Outcome outcome;
  messages.Send(to, tag, data.data(), data.size(), {}, outcome.Function());
  return outcome;
}
Outcome Receive(TaggedMessages& messages, int from, std::uint64_t tag, std::vector<std::uint8_t>& data,
                milliseconds patience = {}) {
  Outcome outcome;
  messages.Receive(from, tag, data.data(), data.size(), patience, outcome.Function());
  return outcome;
}

std::vector<std::uint8_t> Bytes(std::size_t count, unsigned seed) {
  std::vector<std::uint8_t> bytes(count);
  std::minstd_rand random(seed + 1);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

class MailboxOf : public ::testing::TestWithParam<SharedMemory> {
 protected:
  void Run(int size, const std::function<void(NativeCommunicator&, TaggedMessages&)>& function) {
    Settings settings;
    settings.shared_memory = GetParam();
    testing::ThreadWorld(size).Run(settings, [&](NativeCommunicator& world) {
      const std::unique_ptr<TaggedMessages> messages = world.MakeMailbox();
      function(world, *messages);
      world.Barrier();  // a rank that left early would count as lost
    });
  }
};
INSTANTIATE_TEST_SUITE_P(, MailboxOf, ::testing::Values(SharedMemory::kAuto, SharedMemory::kOff),
                         [](const auto& info) {
                           return info.param == SharedMemory::kOff ? "Tcp" : "SharedMemory";
                         });

TEST_P(MailboxOf, EveryRankMaySendFirst) {
  for (const int size : {2, 3, 5}) {
    Run(size, [&](NativeCommunicator& world, TaggedMessages& messages) {
      const int rank = world.rank();
      const int next = (rank + 1) % size;
      const int previous = (rank + size - 1) % size;
      for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{5} << 20}) {
        const std::vector<std::uint8_t> data = Bytes(bytes, static_cast<unsigned>(rank));
        std::vector<std::uint8_t> got(bytes);
        Outcome sent = Send(messages, next, 3, data);
        Outcome received = Receive(messages, previous, 3, got);
        sent.Wait();
        EXPECT_EQ(received.Wait(), previous);
        EXPECT_EQ(got, Bytes(bytes, static_cast<unsigned>(previous)));
      }
    });
  }
}

TEST_P(MailboxOf, AMessageIsNoObstacleForOneWithAnotherTag) {
  Run(2, [](NativeCommunicator& world, TaggedMessages& messages) {
    const std::vector<std::uint8_t> long_one = Bytes(std::size_t{3} << 20, 1);
    const std::vector<std::uint8_t> short_one = Bytes(100, 2);
    if (world.rank() == 0) {
      Outcome first = Send(messages, 1, 1, long_one);
      Outcome second = Send(messages, 1, 2, short_one);
      first.Wait();
      second.Wait();
    } else {
      std::vector<std::uint8_t> got(short_one.size());
      EXPECT_EQ(Receive(messages, 0, 2, got).Wait(), 0);
      EXPECT_EQ(got, short_one);
      got.resize(long_one.size());
      EXPECT_EQ(Receive(messages, TaggedMessages::kAnyRank, 1, got).Wait(), 0);
      EXPECT_EQ(got, long_one);
    }
  });
}

TEST_P(MailboxOf, CollectivesAreBesideThem) {
  Run(3, [](NativeCommunicator& world, TaggedMessages& messages) {
    std::vector<std::uint8_t> got(1000);
    Outcome received;
    if (world.rank() == 0) received = Receive(messages, 2, 0, got);
    world.Barrier();
    if (world.rank() == 2) Send(messages, 0, 0, Bytes(got.size(), 9)).Wait();
    world.Barrier();
    if (world.rank() == 0) {
      EXPECT_EQ(received.Wait(), 2);
      EXPECT_EQ(got, Bytes(got.size(), 9));
    }
  });
}

TEST_P(MailboxOf, AnotherLengthIsAnErrorOfThatReceiveAlone) {
  Run(2, [](NativeCommunicator& world, TaggedMessages& messages) {
    if (world.rank() == 0) {
      Send(messages, 1, 0, Bytes(100, 1)).Wait();
      Send(messages, 1, 0, Bytes(50, 2)).Wait();
      return;
    }
    std::vector<std::uint8_t> got(50);
    Outcome wrong = Receive(messages, 0, 0, got);
    EXPECT_THAT(
        [&] { wrong.Wait(); },
        ThrowsMessage<EngineError>(HasSubstr("rank 0 sent 100 bytes with tag 0, but this rank expects 50")));
    EXPECT_EQ(Receive(messages, 0, 0, got).Wait(), 0);
    EXPECT_EQ(got, Bytes(50, 2));
  });
}

TEST_P(MailboxOf, WhoDoesNotSendInTimeIsNamed) {
  Run(3, [](NativeCommunicator& world, TaggedMessages& messages) {
    if (world.rank() != 1) return;
    std::vector<std::uint8_t> got(8);
    Outcome received = Receive(messages, 2, 0, got, milliseconds(100));
    EXPECT_THAT([&] { received.Wait(); }, ThrowsMessage<TimedOut>(HasSubstr("rank 2")));
    // The other operations, and later ones, fail as well.
    EXPECT_THROW(Receive(messages, 0, 0, got).Wait(), EngineError);
  });
}

TEST_P(MailboxOf, WhoHasLeftIsNamed) {
  Settings settings;
  settings.shared_memory = GetParam();
  testing::ThreadWorld(3).Run(settings, [&](NativeCommunicator& world) {
    std::unique_ptr<TaggedMessages> messages = world.MakeMailbox();
    if (world.rank() == 2) {
      messages = nullptr;
    } else {
      std::vector<std::uint8_t> got(8);
      // Rank 0 waits for rank 2, which has left, and rank 1 waits for rank 0; both must name rank 2.
      Outcome received = Receive(*messages, world.rank() == 0 ? 2 : 0, 0, got);
      EXPECT_THAT([&] { received.Wait(); }, Throws<LostPeer>(Property(&LostPeer::rank, 2)));
    }
    world.Barrier();
  });
}

/// The links of rank 1 of 3: each call sends a byte, nothing ever arrives, and there is always something to
/// do, for at most 10 s.
class BusyTransport final : public Transport {
 public:
  int rank() const override { return 1; }
  int world_size() const override { return 3; }
  void Connect(std::span<const int> /*peers*/) override {}
  Link& To(int /*peer*/) override { return link_; }
  void Wait(std::span<const Interest> /*interests*/, Clock::time_point /*deadline*/) override {
    if (link_.has_ended()) throw EngineError("the mailbox has gone on for 10 s");
  }
  void Abort(int /*lost_rank*/, int /*shortage*/) noexcept override {}

 private:
  class BusyLink final : public Link {
   public:
    bool has_ended() const { return Clock::now() > end_; }
    std::size_t TrySend(const void* /*data*/, std::size_t bytes) override {
      return has_ended() ? 0 : std::min<std::size_t>(bytes, 1);
    }
    std::size_t TryReceive(void* /*data*/, std::size_t /*bytes*/) override { return 0; }

   private:
    const Clock::time_point end_ = Clock::now() + std::chrono::seconds(10);
  };
  BusyLink link_;
};

TEST(Mailbox, WhoDoesNotSendInTimeIsNamedEvenIfOtherMessagesKeepMovingAllTheTime) {
  BusyTransport transport;
  api::FakeWorld world(transport.world_size());
  Mailbox messages(std::make_unique<api::FakeCommunicator>(&world, transport.rank()), &transport, {});
  const std::size_t bytes = std::size_t{1} << 40;  // BusyTransport reads none of them
  std::uint8_t byte = 0;
  Outcome sent;
  messages.Send(0, 0, &byte, bytes, {}, sent.Function());
  std::vector<std::uint8_t> got(8);
  Outcome received = Receive(messages, 2, 0, got, milliseconds(100));
  EXPECT_THAT([&] { received.Wait(); }, Throws<TimedOut>(Property(&TimedOut::rank, 2)));
  EXPECT_THROW(sent.Wait(), EngineError);
}

struct Plan {
  int from;
  int to;
  std::uint64_t tag;
  std::size_t bytes;
  bool from_any;
};

/// Messages between random ranks, in an order that differs between ranks. Only messages with the same sender,
/// receiver and tag keep their order.
TEST_P(MailboxOf, ThousandsOfThemInRandomOrdersArrive) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
    const int size = 2 + below(4);
    std::vector<Plan> plans;
    for (std::uint64_t i = 0; i < 400; ++i) {
      const int from = below(size);
      const int to = (from + 1 + below(size - 1)) % size;
      const bool is_long = below(20) == 0;
      const auto bytes = static_cast<std::size_t>(below(is_long ? 300'000 : 200));
      // If a message is received from any rank, no other message has its tag.
      const bool from_any = below(4) == 0;
      plans.push_back(
          {from, to, from_any ? 1000 + i : static_cast<std::uint64_t>(below(5)), bytes, from_any});
    }
    Run(size, [&](NativeCommunicator& world, TaggedMessages& messages) {
      std::mt19937 own(seed * 10 + static_cast<unsigned>(world.rank()));
      std::vector<std::size_t> order;
      for (std::size_t i = 0; i < plans.size(); ++i) {
        if (plans[i].from == world.rank() || plans[i].to == world.rank()) order.push_back(i);
      }
      std::shuffle(order.begin(), order.end(), own);
      // Among messages with the same sender, receiver and tag, the first sent is the first received.
      const auto key = [&](std::size_t i) { return std::tuple(plans[i].from, plans[i].to, plans[i].tag); };
      std::vector<std::size_t> sorted = order;
      std::sort(sorted.begin(), sorted.end());
      std::map<std::tuple<int, int, std::uint64_t>, std::deque<std::size_t>> next;
      for (const std::size_t i : sorted) next[key(i)].push_back(i);
      std::vector<std::vector<std::uint8_t>> data(plans.size());
      std::vector<std::pair<std::size_t, Outcome>> outcomes;
      for (const std::size_t place : order) {
        const std::size_t i = next[key(place)].front();
        next[key(place)].pop_front();
        const Plan& plan = plans[i];
        if (plan.from == world.rank()) {
          data[i] = Bytes(plan.bytes, static_cast<unsigned>(i));
          outcomes.emplace_back(i, Send(messages, plan.to, plan.tag, data[i]));
        } else {
          data[i].resize(plan.bytes);
          outcomes.emplace_back(
              i, Receive(messages, plan.from_any ? TaggedMessages::kAnyRank : plan.from, plan.tag, data[i]));
        }
      }
      for (auto& [i, outcome] : outcomes) {
        const int from = outcome.Wait();
        if (plans[i].to != world.rank()) continue;
        EXPECT_EQ(from, plans[i].from);
        EXPECT_EQ(data[i], Bytes(plans[i].bytes, static_cast<unsigned>(i)))
            << "seed " << seed << ", message " << i;
      }
    });
  }
}

}  // namespace
}  // namespace warren
