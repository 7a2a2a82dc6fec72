#include "wire/collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "wire/flat_json.h"

namespace warren::wire::collective {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Describe(const WorkerMessage& message) {
  if (const auto* hello = std::get_if<Hello>(&message)) {
    return "hello " + std::to_string(hello->world_size) + " " + std::to_string(hello->rank) + " " +
           hello->task_id;
  }
  if (const auto* start = std::get_if<Start>(&message))
    return "start " + std::to_string(start->port) + " " + std::to_string(start->error_port);
  if (const auto* failure = std::get_if<Failure>(&message))
    return "failure " + std::to_string(failure->code) + " " + failure->text;
  if (const auto* print = std::get_if<Print>(&message)) return "print " + print->text;
  return "shutdown";
}

std::vector<std::string> ReadInPieces(std::string_view bytes, std::size_t piece) {
  WorkerStream stream;
  std::vector<std::string> messages;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    stream.Append(bytes.substr(at, piece));
    while (auto message = stream.Next()) messages.push_back(Describe(*message));
  }
  return messages;
}

std::string Complaint(const std::string& json, const std::string& command = {}) {
  WorkerStream stream;
  stream.Append(Writer().String(json).Take());
  if (!command.empty()) stream.Append(Writer().String(command).Take());
  try {
    while (stream.Next()) {
    }
  } catch (const ProtocolError& error) {
    return error.what();
  }
  return "none";
}

constexpr char kHello[] = R"({"world_size":-1,"rank":-1,"task_id":"0"})";

TEST(CollectiveWorkerStream, ReadsEveryCommandHoweverItIsCut) {
  const std::string hello = Encode(Hello{-1, -1, "task 7"});
  for (std::size_t piece = 1; piece <= 80; ++piece) {
    EXPECT_THAT(ReadInPieces(hello + Encode(Start{9010, 9011}), piece),
                ElementsAre("hello -1 -1 task 7", "start 9010 9011"));
    EXPECT_THAT(ReadInPieces(Encode(Hello{4, 3, "3"}) + Encode(Shutdown{}), piece),
                ElementsAre("hello 4 3 3", "shutdown"));
    EXPECT_THAT(ReadInPieces(hello + Encode(Print{"[0]\ttrain-auc:1\n\"ü\""}), piece),
                ElementsAre("hello -1 -1 task 7", "print [0]\ttrain-auc:1\n\"ü\""));
    EXPECT_THAT(ReadInPieces(hello + Encode(Failure{"bad", -1}), piece),
                ElementsAre("hello -1 -1 task 7", "failure -1 bad"));
  }
}

// XGBoost 2.1.4 and 3.4.1 were observed to send these bytes.
TEST(CollectiveWorkerStream, ReadsWhatXgboostWrites) {
  const std::string bytes = Writer()
                                .String(R"({"rank":0,"task_id":"0","world_size":-1})")
                                .String(R"({"cmd":1,"error_port":40133,"port":38925})")
                                .Take();
  EXPECT_THAT(ReadInPieces(bytes, 7), ElementsAre("hello -1 0 0", "start 38925 40133"));
}

TEST(CollectiveWorkerStream, TextThatXgboostEscapesHalfIsTextAllTheSame) {
  // XGBoost does not escape a backslash before a u, nor bytes that are not UTF-8.
  const auto print = [](const std::string& text) {
    return ReadInPieces(Writer().String(kHello).String("{\"cmd\":4,\"msg\":\"" + text + "\"}").Take(), 1000)
        .back();
  };
  EXPECT_EQ(print(R"(C:\users\\x)"), R"(print C:\users\x)");
  EXPECT_EQ(print(R"(\u00fc \\u \u12)"), R"(print ü \u \u12)");
  EXPECT_EQ(print("caf\xe9 \xed\xa0\x80"), "print caf\xEF\xBF\xBD \xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(CollectiveWorkerStream, WhatIsUnknownOrNestedIsPassedOver) {
  EXPECT_THAT(ReadInPieces(
                  Writer()
                      .String(R"({"world_size":-1,"new":{"rank":7,"a":[1,{"b":2}]},"rank":-1,"task_id":"0"})")
                      .String(R"({"cmd":2,"more":[],"x":null,"y":1.5,"z":true})")
                      .Take(),
                  5),
              ElementsAre("hello -1 -1 0", "shutdown"));
}

TEST(CollectiveWorkerStream, RefusesWhatIsNoWorkersAndSaysWhy) {
  EXPECT_THAT(Complaint("{\"rank\":"), HasSubstr("the hello is not a JSON object"));
  EXPECT_THAT(Complaint("[1]"), HasSubstr("found a list"));
  EXPECT_THAT(Complaint("7"), HasSubstr("found 7"));
  EXPECT_THAT(Complaint(""), HasSubstr("not a JSON object"));
  EXPECT_THAT(Complaint(R"({"world_size":-1,"rank":-1})"), HasSubstr("nothing for \"task_id\""));
  EXPECT_THAT(Complaint(R"({"world_size":-1,"rank":"0","task_id":"0"})"),
              HasSubstr("has \"0\" for \"rank\""));
  EXPECT_THAT(Complaint(R"({"world_size":-1,"rank":1.5,"task_id":"0"})"), HasSubstr("has 1.5 for \"rank\""));
  EXPECT_THAT(Complaint(R"({"world_size":-1,"rank":-2,"task_id":"0"})"), HasSubstr("has -2 for \"rank\""));
  EXPECT_THAT(Complaint(R"({"world_size":99999999999999999999,"rank":0,"task_id":"0"})"),
              HasSubstr("world_size"));
  EXPECT_THAT(Complaint(R"({"world_size":-1,"rank":-1,"task_id":7})"), HasSubstr("has 7 for \"task_id\""));
  EXPECT_THAT(Complaint(R"({"world_size":-1,"rank":-1,"task_id":")" + std::string(2000, 'x') + "\"}"),
              HasSubstr("at most 1024 bytes"));
  EXPECT_THAT(Complaint(kHello, R"({"cmd":5})"), HasSubstr("has 5 for \"cmd\", expected 1 to 4"));
  EXPECT_THAT(Complaint(kHello, R"({"cmd":"start"})"), HasSubstr("for \"cmd\""));
  EXPECT_THAT(Complaint(kHello, R"({"cmd":1,"port":0,"error_port":1})"), HasSubstr("\"port\""));
  EXPECT_THAT(Complaint(kHello, R"({"cmd":1,"port":70000,"error_port":1})"), HasSubstr("\"port\""));
  EXPECT_THAT(Complaint(kHello, R"({"cmd":3,"msg":"x"})"), HasSubstr("\"code\""));
}

TEST(CollectiveWorkerStream, RefusesHugeLengthsAndDeepNestingEarly) {
  WorkerStream stream;
  stream.Append(Writer().Int(std::int32_t{1} << 30).Take() + "{");
  EXPECT_THROW(stream.Next(), ProtocolError);
  EXPECT_THAT(Complaint("{\"a\":" + std::string(4000, '[') + std::string(4000, ']') + "}"),
              HasSubstr("nesting deeper than"));
}

TEST(CollectiveWorkerStream, NothingFollowsTheCommand) {
  WorkerStream stream;
  stream.Append(Encode(Hello{}) + Encode(Shutdown{}) + "x");
  EXPECT_TRUE(stream.Next());
  EXPECT_TRUE(stream.Next());
  EXPECT_THROW(stream.Next(), ProtocolError);
}

TEST(CollectiveTrackerStream, ReadsTheAnswersHoweverTheyAreCut) {
  const std::string bytes = Encode(World{5}) + Encode(Next{3, "10.0.0.1", 4711});
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    TrackerStream stream;
    std::optional<World> world;
    std::optional<Next> next;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      stream.Append(std::string_view(bytes).substr(at, piece));
      if (!world) world = stream.NextWorld();
      if (world && !next) next = stream.NextPeer();
    }
    ASSERT_TRUE(world && next);
    EXPECT_EQ(world->size, 5);
    EXPECT_EQ(next->rank, 3);
    EXPECT_EQ(next->host, "10.0.0.1");
    EXPECT_EQ(next->port, 4711);
  }
}

TEST(CollectiveTrackerStream, RefusesAWorldWithoutWorkers) {
  TrackerStream stream;
  stream.Append(Encode(World{0}));
  EXPECT_THROW(stream.NextWorld(), ProtocolError);
}

}  // namespace
}  // namespace warren::wire::collective
