// Parsing /proc/PID/stat, and samples of workers made from it.
#include "submit/process/process_stat.h"

#include <gmock/gmock.h>

#include "submit/cluster/agent_messages.h"

namespace warren::submit {
namespace {

constexpr char kRest[] =
    " 0 -1 4194560 6332 53945 0 5 10 40 500 2000 20 0 1 0 3845886 5124096 998 18446744073709551615";

TEST(ProcessStat, IsReadWhateverTheNameOfTheProcess) {
  for (const char* const name : {"bash", "a b", "a) S 1 2 3", "()", "", "two\nlines"}) {
    const auto stat = ParseProcessStat(std::string("4242 (") + name + ") D 17 4242 4241" + kRest);
    ASSERT_TRUE(stat) << name;
    EXPECT_EQ(stat->pid, 4242);
    EXPECT_EQ(stat->state, 'D');
    EXPECT_EQ(stat->parent, 17);
    EXPECT_EQ(stat->group, 4242);
    EXPECT_EQ(stat->session, 4241);
    EXPECT_EQ(stat->ticks, 10u + 40 + 500 + 2000);
    EXPECT_EQ(stat->resident_pages, 998u);
  }
}

TEST(ProcessStat, IsNoneWhereTheTextIsNotWhole) {
  const std::string whole = std::string("4242 (bash) S 17 4242 4241") + kRest;
  const std::size_t needed = whole.find("998");
  for (std::size_t size = 0; size <= needed; ++size)
    EXPECT_FALSE(ParseProcessStat(whole.substr(0, size))) << size;
  EXPECT_TRUE(ParseProcessStat(whole.substr(0, needed + 3)));
}

ProcessStat Stat(pid_t pid, char state, pid_t parent, pid_t session, std::uint64_t ticks = 0) {
  return {pid, state, parent, 0, session, ticks, 1};
}

char StateOf(const std::vector<ProcessStat>& all) {
  return SamplesOf({10}, all, {}).at(10).state;
}

TEST(SamplesOf, SumUpAWorkerItsDescendantsAndItsSession) {
  const std::vector<ProcessStat> all = {
      Stat(1, 'S', 0, 1, 1000),   Stat(10, 'S', 1, 10, 100),
      Stat(11, 'S', 10, 10, 20),   // 11 is a child of 10
      Stat(12, 'S', 11, 12, 3),    // a grandchild in another session
      Stat(13, 'S', 1, 10, 5000),  // in the session of 10; its parent has ended
      Stat(20, 'S', 1, 20, 7),     // another worker
  };
  const auto samples = SamplesOf({10, 20, 30}, all, {100, 4096});
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_DOUBLE_EQ(samples.at(10).cpu_seconds, 51.23);
  EXPECT_EQ(samples.at(10).resident_bytes, 4u * 4096);
  EXPECT_DOUBLE_EQ(samples.at(20).cpu_seconds, 0.07);
}

TEST(SamplesOf, HaveTheStateThatTellsMost) {
  EXPECT_EQ(StateOf({Stat(10, 'S', 1, 10)}), 'S');
  EXPECT_EQ(StateOf({Stat(10, 'S', 1, 10), Stat(11, 'R', 10, 10), Stat(12, 'D', 10, 10)}), 'R');
  EXPECT_EQ(StateOf({Stat(10, 'S', 1, 10), Stat(11, 'D', 10, 10)}), 'D');
  EXPECT_EQ(StateOf({Stat(10, 'D', 1, 10), Stat(11, 'R', 10, 10)}), 'D');
  EXPECT_EQ(StateOf({Stat(10, 'R', 1, 10), Stat(11, 'T', 10, 10)}), 'T');
  EXPECT_EQ(StateOf({Stat(10, 't', 1, 10), Stat(11, 'R', 10, 10)}), 't');
  EXPECT_EQ(StateOf({Stat(10, 'Z', 1, 10), Stat(11, 'S', 10, 10)}), 'Z');
}

TEST(SamplesOf, DoNotRunInCirclesWhenParentsDo) {
  EXPECT_TRUE(SamplesOf({10}, {Stat(11, 'S', 12, 5), Stat(12, 'S', 11, 5)}, {}).empty());
}

TEST(Usage, OfAnAgentIsTheSameSample) {
  const auto sample = ParseUsage("3 R 250 100 2048");
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->state, 'R');
  EXPECT_DOUBLE_EQ(sample->cpu_seconds, 2.5);
  EXPECT_EQ(sample->resident_bytes, std::uint64_t{2} << 20);
  for (const char* const text :
       {"", "3", "3 R 250 100", "3 R 250 0 2048", "3 RR 250 100 2048", "R 250 100 2048", "x R 1 1 1"})
    EXPECT_FALSE(ParseUsage(text)) << text;
}

}  // namespace
}  // namespace warren::submit
