// Reading the hosts repeatedly during a job. ssh_test.py tests this with real scripts and host files.
#include "submit/cluster/host_source.h"

#include <gmock/gmock.h>

#include <stdexcept>

namespace warren::submit {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

std::vector<std::string> Discovered(std::string_view text) {
  std::vector<std::string> lines;
  for (const Host& host : ParseDiscovered(text, "script")) lines.push_back(host.Line());
  return lines;
}

TEST(ParseDiscovered, ANumberAfterAColonIsTheNumberOfSlotsAsWithHorovod) {
  EXPECT_THAT(Discovered("node1\nnode2:4 \n\n  node3:1\r\n"),
              ElementsAre("node1 slots=1", "node2 slots=4", "node3 slots=1"));
}

TEST(ParseDiscovered, OtherFormsAreThoseOfTheHostFile) {
  EXPECT_THAT(Discovered("me@node1:2  # fast\nnode2 slots=3 port=2222\nnode[5-6]:2\nfe80::12\n[fe80::1]:2\n"),
              ElementsAre("me@node1 slots=2", "node2 slots=3 port=2222", "node5 slots=2", "node6 slots=2",
                          "fe80::12 slots=1", "fe80::1 slots=2"));
  EXPECT_THAT(Discovered("me@node1:4 port=2222\n node2:8 max_slots=9\nnode3:0\nnode4:00 port=22\n"),
              ElementsAre("me@node1 slots=4 port=2222", "node2 slots=8 max_slots=9"));
  EXPECT_THROW(Discovered("node1:2222 slots=2"), std::runtime_error);
}

TEST(ParseDiscovered, HostsOfALineCannotHaveSlotsOfTheirOwn) {
  EXPECT_THAT(Discovered("node1,node2:4\nfe80::1,fe80::2\n"),
              ElementsAre("node1 slots=4", "node2 slots=4", "fe80::1 slots=1", "fe80::2 slots=1"));
  for (const char* const line : {"node1:4,node2:4", "node1:2000,node2:2000", "a,b:4,c", "[fe80::1]:4,a"}) {
    EXPECT_THAT(
        [&] { Discovered(std::string("node0\n") + line); },
        ThrowsMessage<std::runtime_error>(testing::AllOf(
            testing::StartsWith("script:2: "), HasSubstr("write one host per line, such as node1:4"))))
        << line;
  }
}

TEST(ParseDiscovered, NothingIsNoHost) {
  EXPECT_THAT(Discovered(""), IsEmpty());
  EXPECT_THAT(Discovered(" \n# none\n"), IsEmpty());
}

TEST(ParseDiscovered, WhatIsNoHostIsRefusedWithItsLine) {
  EXPECT_THAT([] { Discovered("node1\nno such cluster!\n"); },
              ThrowsMessage<std::runtime_error>(HasSubstr("script:2: 'such' is not understood")));
  EXPECT_THAT(Discovered("node1:0"), IsEmpty());
  EXPECT_THROW(Discovered("node1:1000000"), std::runtime_error);
}

TEST(ParseDiscovered, AMessageAboutBinaryOutputIsShort) {
  for (const std::string& text : {std::string(10'000'000, '\0'), "a " + std::string(900'000, '9'),
                                  std::string(900'000, '%') + ",b", std::string(900'000, '9') + " 7"}) {
    EXPECT_THAT([&] { Discovered(text); },
                ThrowsMessage<std::runtime_error>(testing::SizeIs(testing::Lt(1000U))));
  }
}

class HostReadingsTest : public testing::Test {
 protected:
  HostReadings::Result Take(const std::string& text) { return readings_.Take({text}); }

  HostReadings readings_{ParseDiscovered("a\nb:2\n", "script"), "script",
                         [](const std::string& text) { return ParseDiscovered(text, "script"); }};
};

TEST_F(HostReadingsTest, OnlyChangesArePassedOn) {
  EXPECT_EQ(Take("a\nb:2\n").hosts, std::nullopt);
  const auto result = Take("a\n\nc\n");
  ASSERT_TRUE(result.hosts);
  EXPECT_EQ(result.hosts->at(1).name, "c");
  EXPECT_FALSE(result.line);
  EXPECT_EQ(Take("a\nc\n").hosts, std::nullopt);
}

TEST_F(HostReadingsTest, AFailureKeepsTheHostsAndIsReportedOnce) {
  auto result = readings_.Take({"a\n", "the script exited with code 3"});
  EXPECT_FALSE(result.hosts);
  ASSERT_TRUE(result.line);
  EXPECT_EQ(result.line->text, "the script exited with code 3; the job keeps the hosts that it knows");
  EXPECT_EQ(result.line->severity, Severity::kWarning);
  EXPECT_FALSE(readings_.Take({"", "the script exited with code 4"}).line);
  EXPECT_FALSE(Take("not a host!").line);
  result = Take("a\nb:2\n");
  EXPECT_FALSE(result.hosts);
  ASSERT_TRUE(result.line);
  EXPECT_EQ(result.line->text, "script names hosts again");
  EXPECT_TRUE(Take("not a host!").line) << "another failure";
}

TEST_F(HostReadingsTest, NoHostsAtAllAreTakenForAFailure) {
  const auto result = Take("\n");
  EXPECT_FALSE(result.hosts);
  ASSERT_TRUE(result.line);
  EXPECT_EQ(result.line->text, "script: no hosts; the job keeps the hosts that it knows");
}

TEST_F(HostReadingsTest, AFileThatIsBeingWrittenIsReadAgain) {
  const auto take = [this](const std::string& text) { return readings_.TakeFile({text}).hosts; };
  EXPECT_EQ(take("a"), std::nullopt);
  EXPECT_EQ(take("a\nc:"), std::nullopt);
  EXPECT_EQ(take("a\nc\n"), std::nullopt);
  EXPECT_EQ(readings_.known().size(), 2U);
  const auto hosts = take("a\nc\n");
  ASSERT_TRUE(hosts);
  EXPECT_EQ(hosts->at(1).name, "c");
  EXPECT_EQ(take("a\nc\n"), std::nullopt);
}

TEST_F(HostReadingsTest, AnErrorOfAFileIsReportedOnceAndSoIsItsEnd) {
  const auto line = [this](const HostReading& reading) {
    const auto result = readings_.TakeFile(reading);
    return result.line ? result.line->text : "";
  };
  EXPECT_EQ(line({"a\nb slots=2\n"}), "");
  EXPECT_EQ(line({"", "there is no file"}), "there is no file; the job keeps the hosts that it knows");
  EXPECT_EQ(line({"", "there is no file"}), "");
  EXPECT_EQ(line({"a\nb slots=2\n"}), "") << "the first reading after the error";
  EXPECT_EQ(line({"a\nb slots=2\n"}), "script names hosts again");
  EXPECT_EQ(line({"bad host!\n"}), "");
  EXPECT_THAT(line({"bad host!\n"}), HasSubstr("the job keeps the hosts that it knows"));
  EXPECT_EQ(line({"bad host!\n"}), "");
}

TEST(HostReadings, AJobWithoutHostsWaitsForThem) {
  HostReadings readings({}, "script",
                        [](const std::string& text) { return ParseDiscovered(text, "script"); });
  EXPECT_FALSE(readings.Take({""}).line);
  EXPECT_EQ(readings.Take({"", "script failed"}).line->text, "script failed; the job waits for hosts");
  EXPECT_FALSE(readings.Take({""}).line) << "it names no hosts";
  const auto result = readings.Take({"a"});
  EXPECT_TRUE(result.hosts);
  ASSERT_TRUE(result.line);
  EXPECT_EQ(result.line->text, "script names hosts again");
}

}  // namespace
}  // namespace warren::submit
