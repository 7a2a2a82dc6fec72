#include "submit/trace/job_trace.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <set>

namespace warren::submit {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

class JobTraceTest : public testing::Test {
 protected:
  void Pass(int time) { now_ += seconds(time); }
  /// Starts both workers, and links them.
  void Link() {
    for (std::size_t i = 0; i < 2; ++i) trace_.Runs(i, 2, now_);
    trace_.Joined(1, 2, now_);
    Pass(1);
    trace_.Joined(2, 2, now_);
    trace_.Linked(now_);
  }
  static TracedProcess Worker(std::size_t index) {
    return {index, fmt::format("worker {}", index), static_cast<int>(index), "n1"};
  }
  /// Moves the spans that have ended to all_. Returns their names in order.
  std::vector<std::string> Take() {
    std::vector<std::string> names;
    for (Span& span : trace_.TakeEnded()) {
      names.push_back(span.name);
      EXPECT_TRUE(ids_.insert(span.id).second);
      EXPECT_LE(span.begin_ns, span.end_ns);
      all_.push_back(std::move(span));
    }
    return names;
  }
  /// The only span with this name and, if given, this attribute. Throws std::runtime_error if there is none.
  const Span& Of(const std::string& name, const std::string& attribute = "", std::int64_t value = 0) const {
    const Span* found = nullptr;
    for (const Span& span : all_) {
      if (span.name != name ||
          (!attribute.empty() && ValueOf(span.attributes, attribute) != AttributeValue(value)))
        continue;
      EXPECT_EQ(found, nullptr) << name;
      found = &span;
    }
    if (found == nullptr) throw std::runtime_error("no " + name);
    return *found;
  }
  static std::optional<AttributeValue> ValueOf(const Attributes& attributes, const std::string& name) {
    for (const auto& [key, value] : attributes) {
      if (key == name) return value;
    }
    return std::nullopt;
  }
  static double SecondsOf(const Span& span) { return static_cast<double>(span.end_ns - span.begin_ns) / 1e9; }

  TimePoint now_{seconds(50)};
  int ids_given_ = 0;
  JobTrace trace_{{"4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", ""},
                  "train.py",
                  {{"warren.cluster", "ssh"}},
                  now_,
                  1'700'000'000'000'000'000,
                  [this] { return fmt::format("{:016x}", ++ids_given_); }};
  std::vector<Span> all_;
  std::set<std::string> ids_;
};

TEST_F(JobTraceTest, AJobHasAnAttemptWithItsStartItsJoiningAndItsRounds) {
  Pass(2);
  Link();
  for (int round = 0; round < 2; ++round) {
    Pass(3);
    trace_.Evaluated(round, 2, {{"train-rmse", 0.5}}, true, now_);
  }
  EXPECT_THAT(Take(), ElementsAre("start", "join", "round"));
  Pass(4);
  trace_.Finished(0, "", std::nullopt, now_);
  EXPECT_THAT(Take(), ElementsAre("round", "attempt", "train.py"));

  const Span& job = Of("train.py");
  EXPECT_EQ(job.parent, "00f067aa0ba902b7");
  EXPECT_EQ(job.begin_ns, 1'700'000'000'000'000'000);
  EXPECT_EQ(SecondsOf(job), 13);
  EXPECT_FALSE(job.has_failed);
  EXPECT_EQ(ValueOf(job.attributes, "warren.cluster"), AttributeValue("ssh"));
  EXPECT_EQ(ValueOf(job.attributes, "process.exit.code"), AttributeValue(std::int64_t{0}));
  EXPECT_EQ(ValueOf(job.attributes, "warren.attempts"), AttributeValue(std::int64_t{1}));
  const Span& attempt = Of("attempt");
  EXPECT_EQ(attempt.parent, job.id);
  EXPECT_EQ(trace_.Traceparent(), "00-4bf92f3577b34da6a3ce929d0e0e4736-" + attempt.id + "-01");
  EXPECT_EQ(SecondsOf(Of("start")), 2);
  EXPECT_EQ(SecondsOf(Of("join")), 1);
  EXPECT_EQ(Of("join").begin_ns, Of("start").end_ns);
  for (const char* name : {"start", "join"}) EXPECT_EQ(Of(name).parent, attempt.id);
  const Span& round = Of("round", "warren.round", 1);
  EXPECT_EQ(round.parent, attempt.id);
  EXPECT_EQ(SecondsOf(round), 3) << "it ended when it was heard of";
  EXPECT_EQ(round.begin_ns, Of("round", "warren.round", 0).end_ns);
  EXPECT_EQ(Of("round", "warren.round", 0).begin_ns, Of("join").end_ns);
  EXPECT_EQ(ValueOf(round.attributes, "warren.rounds"), AttributeValue(std::int64_t{2}));
  EXPECT_EQ(ValueOf(round.attributes, "warren.metric.train-rmse"), AttributeValue(0.5));
}

TEST_F(JobTraceTest, MetricsOfARoundThatComeOneByOneAreOfOneSpan) {
  Link();
  trace_.Evaluated(1, 0, {{"a", 1.0}}, true, now_);
  Pass(1);
  trace_.Evaluated(1, 0, {{"a", 1.0}, {"b", 2.0}}, false, now_);
  trace_.Evaluated(1, 0, {{"a", 3.0}}, true, now_);  // another training begins
  trace_.Finished(0, "", std::nullopt, now_);
  EXPECT_THAT(Take(), ElementsAre("start", "join", "round", "round", "attempt", "train.py"));
  EXPECT_EQ(ValueOf(all_[2].attributes, "warren.metric.b"), AttributeValue(2.0));
  EXPECT_EQ(ValueOf(all_[2].attributes, "warren.rounds"), std::nullopt);
  EXPECT_EQ(SecondsOf(all_[2]), 0);
  EXPECT_EQ(ValueOf(all_[3].attributes, "warren.metric.b"), std::nullopt);
}

TEST_F(JobTraceTest, AnAttemptSaysWhichProcessWasLost) {
  Link();
  Pass(1);
  trace_.Exited(Worker(1), {.code = 3}, now_);
  trace_.StopBegins();
  Pass(1);
  trace_.Exited(Worker(0), {.signal = 15}, now_);
  const std::string first = trace_.Traceparent();
  trace_.AttemptEnded("worker 1 exited with code 3", Worker(1), now_);
  EXPECT_THAT(Take(), ElementsAre("start", "join", "attempt"));
  const std::string second = trace_.Traceparent();
  EXPECT_NE(second, first);
  Pass(1);
  trace_.BeginsAgain(now_);
  EXPECT_EQ(trace_.Traceparent(), second);
  Link();
  trace_.Evaluated(0, 0, {}, true, now_);
  trace_.Finished(0, "", std::nullopt, now_);
  EXPECT_THAT(Take(), ElementsAre("start", "join", "round", "attempt", "train.py"));

  const Span& lost = Of("attempt", "warren.attempt", 1);
  EXPECT_NE(first.find(lost.id), std::string::npos);
  EXPECT_TRUE(lost.has_failed);
  EXPECT_EQ(lost.error, "worker 1 exited with code 3");
  EXPECT_EQ(SecondsOf(lost), 3);
  EXPECT_EQ(ValueOf(lost.attributes, "warren.lost.process"), AttributeValue("worker 1"));
  EXPECT_EQ(ValueOf(lost.attributes, "warren.lost.rank"), AttributeValue(std::int64_t{1}));
  EXPECT_EQ(ValueOf(lost.attributes, "warren.lost.host"), AttributeValue("n1"));
  EXPECT_EQ(ValueOf(lost.attributes, "warren.lost.exit_code"), AttributeValue(std::int64_t{3}));
  ASSERT_EQ(lost.events.size(), 1U) << "worker 0 was stopped, not lost";
  EXPECT_EQ(lost.events[0].name, "process lost");
  EXPECT_EQ(ValueOf(lost.events[0].attributes, "warren.lost.process"), AttributeValue("worker 1"));
  const Span& good = Of("attempt", "warren.attempt", 2);
  EXPECT_NE(second.find(good.id), std::string::npos);
  EXPECT_FALSE(good.has_failed);
  EXPECT_THAT(good.events, IsEmpty());
  EXPECT_EQ(Of("round").parent, good.id);
  EXPECT_FALSE(Of("train.py").has_failed);
  EXPECT_EQ(ValueOf(Of("train.py").attributes, "warren.attempts"), AttributeValue(std::int64_t{2}));
}

TEST_F(JobTraceTest, AWorkerThatIsStartedAgainJoinsAgain) {
  Link();
  trace_.Exited(Worker(1), {.signal = 9}, now_);
  Pass(2);
  trace_.Runs(1, 2, now_);
  trace_.Joined(2, 2, now_);
  trace_.Linked(now_);
  trace_.Finished(0, "", std::nullopt, now_);
  EXPECT_THAT(Take(), ElementsAre("start", "join", "join", "attempt", "train.py"));
  EXPECT_EQ(SecondsOf(all_[2]), 2);
  EXPECT_EQ(ValueOf(all_[1].attributes, "warren.again"), AttributeValue(false));
  EXPECT_EQ(ValueOf(all_[2].attributes, "warren.again"), AttributeValue(true));
  EXPECT_EQ(ValueOf(Of("attempt").events.at(0).attributes, "warren.lost.signal"), AttributeValue("SIGKILL"));
  EXPECT_EQ(ValueOf(Of("attempt").events.at(0).attributes, "warren.lost.exit_code"), std::nullopt);
}

TEST_F(JobTraceTest, AGenerationEndsWithTheLossOfAMember) {
  Pass(1);
  trace_.GenerationBegan(1, 2, "generation 1 begins", now_);
  Link();
  Pass(1);
  trace_.Evaluated(1, 0, {}, true, now_);
  trace_.Exited({1, "worker 1", std::nullopt, "n1"}, {.signal = 9}, now_);
  EXPECT_THAT(Take(), ElementsAre("start", "join")) << "only a worker with a rank is a member";
  trace_.Exited(Worker(1), {.signal = 9}, now_);
  EXPECT_THAT(Take(), ElementsAre("round", "generation"));
  Pass(3);
  trace_.GenerationBegan(2, 1, "generation 2 begins", now_);
  trace_.Linked(now_);
  Pass(1);
  trace_.Evaluated(2, 0, {}, true, now_);
  trace_.GenerationBegan(3, 2, "generation 3 begins", now_);
  trace_.Finished(1, "out of memory", std::nullopt, now_);
  EXPECT_THAT(Take(), ElementsAre("join", "round", "generation", "generation", "attempt", "train.py"));

  const Span& first = Of("generation", "warren.generation", 1);
  EXPECT_EQ(first.parent, Of("attempt").id);
  EXPECT_TRUE(first.has_failed);
  EXPECT_EQ(first.error, "worker 1 (rank 1, host n1) was killed by signal 9 (SIGKILL)");
  EXPECT_EQ(ValueOf(first.attributes, "warren.workers"), AttributeValue(std::int64_t{2}));
  EXPECT_EQ(ValueOf(first.attributes, "warren.begin"), AttributeValue("generation 1 begins"));
  EXPECT_EQ(ValueOf(first.attributes, "warren.lost.signal"), AttributeValue("SIGKILL"));
  EXPECT_EQ(Of("round", "warren.round", 1).parent, first.id);
  const Span& second = Of("generation", "warren.generation", 2);
  EXPECT_FALSE(second.has_failed) << "a worker came";
  EXPECT_EQ(second.begin_ns - first.end_ns, 3'000'000'000);
  EXPECT_EQ(Of("round", "warren.round", 2).parent, second.id);
  EXPECT_EQ(Of("round", "warren.round", 2).begin_ns, second.begin_ns);
  EXPECT_EQ(Of("generation", "warren.generation", 3).error, "out of memory");
}

TEST_F(JobTraceTest, AJobWhoseWorkersDoNotComeSaysHowManyHadJoined) {
  trace_.Runs(0, 2, now_);
  trace_.Runs(0, 2, now_);
  trace_.Joined(1, 2, now_);
  Pass(5);
  trace_.Finished(143, "the job was interrupted by SIGTERM", Worker(1), now_);
  EXPECT_THAT(Take(), ElementsAre("start", "join", "attempt", "train.py"));
  EXPECT_EQ(Of("join").error, "1 of 2 workers had joined");
  EXPECT_EQ(SecondsOf(Of("start")), 5);
  for (const char* name : {"start", "attempt", "train.py"}) {
    EXPECT_TRUE(Of(name).has_failed);
    EXPECT_EQ(Of(name).error, "the job was interrupted by SIGTERM");
  }
  EXPECT_EQ(ValueOf(Of("train.py").attributes, "warren.lost.process"), AttributeValue("worker 1"));
  EXPECT_EQ(ValueOf(Of("train.py").attributes, "warren.lost.exit_code"), std::nullopt)
      << "it has not ended by itself";
  EXPECT_EQ(ValueOf(Of("train.py").attributes, "process.exit.code"), AttributeValue(std::int64_t{143}));
}

TEST_F(JobTraceTest, KeepsALimitedNumberOfEvents) {
  for (std::size_t i = 0; i < kMostSpanEvents + 3; ++i) trace_.Exited(Worker(i), {.code = 1}, now_);
  trace_.Finished(1, "", std::nullopt, now_);
  Take();
  EXPECT_EQ(Of("attempt").events.size(), kMostSpanEvents);
  EXPECT_EQ(Of("attempt").dropped_events, 3);
}

}  // namespace
}  // namespace warren::submit
