// Requests for stacks: agents send stacks line by line, and each requester receives them once. Only a few
// processes are inspected at a time.
#include "submit/cluster/stack_requests.h"

#include <gmock/gmock.h>

#include "submit/cluster/dump_queue.h"

namespace warren::submit {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class StackRequestsTest : public testing::Test {
 protected:
  StackRequests::Done Note(const std::string& who) {
    return [this, who](const std::string& text) { told_.push_back(who + ": " + text); };
  }

  boost::asio::io_context io_;
  StackRequests requests_{io_};
  std::vector<std::string> told_;
};

TEST_F(StackRequestsTest, AllWhoAskAreToldAndTheAgentIsAskedOnce) {
  EXPECT_TRUE(requests_.Ask(3, Note("one")));
  EXPECT_FALSE(requests_.Ask(3, Note("two")));
  EXPECT_TRUE(requests_.Ask(4, Note("other")));
  EXPECT_TRUE(requests_.Take({3, "stack", "0 #0  main ()"}));
  EXPECT_TRUE(requests_.Take({3, "stack", "0 "}));
  EXPECT_TRUE(requests_.Take({3, "stack", "0   two  blanks"}));
  EXPECT_TRUE(requests_.Take({3, "stacks", "0"}));
  io_.poll();
  EXPECT_THAT(told_,
              ElementsAre("one: #0  main ()\n\n  two  blanks\n", "two: #0  main ()\n\n  two  blanks\n"));
  EXPECT_TRUE(requests_.Ask(3, Note("later"))) << "the next is another request";
}

TEST_F(StackRequestsTest, OneThatEndsTellsWhyBehindWhatHasCome) {
  requests_.Ask(0, Note("one"));
  requests_.Take({0, "stack", "0 #0  main ()"});
  requests_.End(0, "it has ended");
  requests_.End(0, "again");
  io_.poll();
  EXPECT_THAT(told_, ElementsAre("one: #0  main ()\n(it has ended)\n"));
}

TEST_F(StackRequestsTest, LinesNobodyWaitsForAreDroppedAndOtherMessagesLeft) {
  EXPECT_TRUE(requests_.Take({0, "stack", "0 late"}));
  EXPECT_FALSE(requests_.Take({0, "exit", "0 1"}));
  io_.poll();
  EXPECT_THAT(told_, IsEmpty());
}

/// A cluster that keeps requests for stacks until the test answers them.
class SlowCluster : public Cluster {
 public:
  Started Start(std::size_t, const PlannedProcess&, int) override { return {}; }
  void Stop() override {}
  void Kill() override {}
  void Dump(std::size_t index, std::function<void(std::string text)> done) override {
    asked.push_back(index);
    answers.push_back(std::move(done));
  }

  std::vector<std::size_t> asked;
  std::vector<std::function<void(std::string text)>> answers;
};

TEST(DumpQueue, LooksAtAFewProcessesAtATimeInTheirOrder) {
  SlowCluster cluster;
  DumpQueue queue;
  std::vector<std::string> told;
  for (std::size_t i = 0; i < kDumpsAtOnce + 2; ++i)
    queue.Ask(cluster, i, [&](const std::string& text) { told.push_back(text); });
  EXPECT_EQ(cluster.asked.size(), kDumpsAtOnce);
  cluster.answers[1]("of 1");
  EXPECT_THAT(told, ElementsAre("of 1"));
  EXPECT_EQ(cluster.asked.back(), kDumpsAtOnce);
  for (const std::size_t i : {std::size_t{0}, kDumpsAtOnce}) cluster.answers[i]("another");
  EXPECT_EQ(cluster.asked.size(), kDumpsAtOnce + 2);
  EXPECT_EQ(told.size(), 3u);
}

}  // namespace
}  // namespace warren::submit
