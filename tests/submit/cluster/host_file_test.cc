// Host files: every form of a line, and the errors for malformed ones.
#include "submit/cluster/host_file.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace warren::submit {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;

std::string HostFileError(const std::string& text) {
  try {
    ParseHosts(text, "hosts.txt");
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "(none)";
}

TEST(HostFile, TakesNamesUsersPortsSlotsAndComments) {
  const auto hosts = ParseHosts(
      "# the rack\n"
      "node1\n"
      "\n"
      "  node2 slots=4 max_slots=8  # big\n"
      "alice@node3:2222\tslots=2\r\n",
      "hosts.txt");
  EXPECT_THAT(hosts, ElementsAre(Host{"node1", "", 0, 1}, Host{"node2", "", 0, 4, 8},
                                 Host{"node3", "alice", 2222, 2}));
  EXPECT_EQ(hosts[2].Login(), "alice@node3");
}

TEST(HostFile, TakesIpv6AddressesWithAndWithoutPort) {
  EXPECT_THAT(
      ParseHosts("[fd00::1]:2222\nfd00::2\nbob@[fd00::3] slots=3\n", "f"),
      ElementsAre(Host{"fd00::1", "", 2222, 1}, Host{"fd00::2", "", 0, 1}, Host{"fd00::3", "bob", 0, 3}));
}

TEST(HostFile, AHostThatIsNamedAgainGetsTheSlotsOfBothLines) {
  EXPECT_THAT(ParseHosts("a slots=2\nb\na slots=3\na:2222\n", "f"),
              ElementsAre(Host{"a", "", 0, 5}, Host{"b", "", 0, 1}, Host{"a", "", 2222, 1}));
  EXPECT_THAT(ParseHosts("a slots=2 max_slots=4\na\na max-slots=2\n", "f"),
              ElementsAre(Host{"a", "", 0, 4, 7}));
}

TEST(HostFile, SkipsAByteOrderMark) {
  EXPECT_THAT(ParseHosts("\xEF\xBB\xBFnode1 slots=2\r\nnode2\r\n", "f"),
              ElementsAre(Host{"node1", "", 0, 2}, Host{"node2", "", 0, 1}));
  EXPECT_THAT(HostFileError(std::string("\xFF\xFEn\0\n", 5)), HasSubstr("hosts.txt:1: "));
}

TEST(HostFile, TakesSeveralHostsOfALineAsSlurmWritesThem) {
  const auto names = [](const std::string& text) {
    std::string joined;
    for (const Host& host : ParseHosts(text, "f")) joined += (joined.empty() ? "" : " ") + host.name;
    return joined;
  };
  EXPECT_EQ(names("node1,node2\n"), "node1 node2");
  EXPECT_EQ(names("node[1-3]"), "node1 node2 node3");
  EXPECT_EQ(names("node[08-11,3,007]"), "node08 node09 node10 node11 node3 node007");
  EXPECT_EQ(names("node[8-11]"), "node8 node9 node10 node11");
  EXPECT_EQ(names("node[0-1]"), "node0 node1");
  EXPECT_EQ(names("n[1-2].rack[3-4].example,m1"),
            "n1.rack3.example n2.rack3.example n1.rack4.example n2.rack4.example m1");
  EXPECT_EQ(names("[1-2]n"), "1n 2n");
  EXPECT_THAT(ParseHosts("alice@node[1-2]:2222 slots=3", "f"),
              ElementsAre(Host{"node1", "alice", 2222, 3}, Host{"node2", "alice", 2222, 3}));
  for (const char* bad : {"node[]", "node[a-c]", "node[3-1]", "node[1-]", "node[-1]", "node[1-3/2]",
                          "node[1,]", "node[01-3]", "node[1-010]", "node[1--2]", "node[1234567890]"}) {
    EXPECT_THAT(HostFileError(bad), HasSubstr("is not a range of hosts; write it as in node[1-3,7]")) << bad;
  }
  EXPECT_THAT(HostFileError("node[1-3"), HasSubstr("the ']' is missing"));
  EXPECT_THAT(HostFileError("node1-3]"), HasSubstr("there is a ']' without a '['"));
  EXPECT_THAT(HostFileError("node[1-999999999]"), HasSubstr("names more than 100000 hosts"));
  EXPECT_THAT(HostFileError("node[1-90000],m[1-90000]"), HasSubstr("more than 100000 hosts"));
  EXPECT_THAT(HostFileError("node1,"), HasSubstr("there is no host name"));
  std::string many = "n";
  for (int i = 0; i < 100'000; ++i) many += "[1]";
  EXPECT_THAT(HostFileError(many), HasSubstr("...' has more than 16 ranges in brackets"));
  EXPECT_EQ(names("n[1][2][3][4][5][6][7][8][9][1][2][3][4][5][6][7]"), "n1234567891234567");
}

TEST(HostFile, TakesSlotsBehindAStar) {
  EXPECT_THAT(ParseHosts("node1*2\nnode[2-3]*4 max_slots=8\n", "f"),
              ElementsAre(Host{"node1", "", 0, 2}, Host{"node2", "", 0, 4, 8}, Host{"node3", "", 0, 4, 8}));
  EXPECT_THAT(HostFileError("node*"), HasSubstr("'' is not a valid number of slots"));
  EXPECT_THAT(HostFileError("node1*2 slots=3"), HasSubstr("the number of slots twice"));
}

TEST(HostFile, TakesEachSettingOfALineOnce) {
  EXPECT_THAT(HostFileError("node1 slots=2 slots=3"), HasSubstr("'node1' has slots= twice on its line"));
  EXPECT_THAT(HostFileError("node1 max_slots=2 port=1 max-slots=2"),
              HasSubstr("'node1' has max_slots= twice"));
  EXPECT_THAT(HostFileError("node1 port=22 slots=1 port=22"), HasSubstr("'node1' has port= twice"));
}

TEST(HostFile, RefusesUrls) {
  for (const std::string url : {"http://node1", "ssh://alice@node1:22", "node2,http://node1:80/"}) {
    EXPECT_THAT(HostFileError(url), HasSubstr("is not a host name: leave out '")) << url;
  }
  EXPECT_THAT(HostFileError("http://node1"),
              HasSubstr("'http://node1' is not a host name: leave out 'http://'"));
  // The last '@' separates the host, as in ssh: a login name may contain '@', too.
  EXPECT_THAT(ParseHosts("alice@example.org@node1\n", "f"),
              ElementsAre(Host{"node1", "alice@example.org", 0, 1}));
}

TEST(HostFile, RefusesANumberBehindAColonThatMayBeSlots) {
  EXPECT_THAT(
      HostFileError("# Horovod's\nnode1:2\n"),
      StartsWith(
          "hosts.txt:2: 'node1:2' may mean 2 slots or port 2; write 'node1 slots=2' or 'node1 port=2'"));
  EXPECT_THAT(HostFileError("10.0.0.1:22"), HasSubstr("may mean 22 slots or port 22"));
  EXPECT_THAT(HostFileError("node1:2,node2:2"), HasSubstr("'node1:2' may mean"));
  EXPECT_THAT(ParseHosts("a:1024\nb:22 slots=3\nalice@c:22\n[fd00::1]:22\nd port=22\n", "f"),
              ElementsAre(Host{"a", "", 1024, 1}, Host{"b", "", 22, 3}, Host{"c", "alice", 22, 1},
                          Host{"fd00::1", "", 22, 1}, Host{"d", "", 22, 1}));
  EXPECT_THAT(HostFileError("a:2222 port=2223"), HasSubstr("two ports, 2222 and 2223"));
}

TEST(HostFile, RefusesWhatIsNoHostName) {
  for (const char* bad : {"node!",         "n\xC3\xB6",  "\"node1\"", "node1;node2", "node1|x",  "host=node1",
                          "node1/2",       "a..b",       "-a",        "a.-b",        "a-.b",     "1.2.3",
                          "10.0.0.256",    "4",          "1:2:3",     "node1:2:3",   "a::b::c",  "$(reboot)",
                          "node1\x1b[31m", "node{1..3}", "user@",     "fd00::1::2",  "[node1:x]"}) {
    EXPECT_THAT(HostFileError(bad), StartsWith("hosts.txt:1: ")) << bad;
    EXPECT_THAT(HostFileError(bad), testing::Not(HasSubstr("\x1b"))) << bad;
  }
  EXPECT_THAT(HostFileError("node{1..3}"), HasSubstr("several hosts are written node[1-3]"));
  EXPECT_THAT(HostFileError(std::string(64, 'a')), HasSubstr("a part of it is too long"));
  EXPECT_THAT(HostFileError("-oProxyCommand=x@node1"), HasSubstr("would be read as an option"));
  EXPECT_THAT(HostFileError(std::string("[fd00::1\0x]:2222", 16)),
              HasSubstr("it is not an IPv6 address either"));
  EXPECT_THAT(ParseHosts("Node_1.example.com.\n10.0.0.1\nfe80::1%eth0\nxn--nde-sna\n", "f"),
              testing::SizeIs(4));
}

TEST(HostFile, SaysTheRightFormOfWhatIsNotUnderstood) {
  EXPECT_THAT(HostFileError("node1 4 all.q@node1 UNDEFINED"), HasSubstr("for 4 slots write: node1 slots=4"));
  EXPECT_THAT(HostFileError("node1 slots = 4"), HasSubstr("'slots' is not understood; a line is a host"));
  EXPECT_THAT(HostFileError("node1 cpu=4"), HasSubstr("slots=N, max_slots=N or port=N"));
  EXPECT_THAT(HostFileError("10.0.0.1 node1"), HasSubstr("'node1' is not understood; a line is a host"));
  for (const char* line : {"a slots=4 max_slots=2", "a*4 max_slots=2", "a,b*4 max_slots=2"}) {
    EXPECT_THAT(HostFileError(line), HasSubstr("max_slots=2 is below slots=4")) << line;
  }
  EXPECT_THAT(HostFileError("a[1]@node"), HasSubstr("'a[1]' is not a user name"));
  EXPECT_THAT(HostFileError("node1\n\xEF\xBB\xBF"
                            "alice@node2"),
              HasSubstr("is not a user name"));
  EXPECT_THAT(
      [] { ReadHosts("node1,node2"); },
      ThrowsMessage<std::runtime_error>(HasSubstr("--host-file (-H) takes a file with one host per line")));
}

TEST(HostFile, LinesAreReadBackAsTheyAreShown) {
  const auto hosts = ParseHosts("node[1-2]*3\nalice@[fd00::1]:22 max_slots=4\nb:2222\n", "f");
  std::string text;
  for (const Host& host : hosts) text += host.Line() + '\n';
  EXPECT_EQ(ParseHosts(text, "f"), hosts) << text;
}

TEST(HostFile, ErrorsNameTheLineAndWhatItShouldBe) {
  EXPECT_THAT(HostFileError("a\nb slots=none\n"),
              StartsWith("hosts.txt:2: 'none' is not a valid number of slots"));
  EXPECT_THAT(HostFileError("a slots=0\n"), HasSubstr("from 1 to"));
  EXPECT_THAT(HostFileError("a:70000\n"), HasSubstr("'70000' is not a valid port"));
  EXPECT_THAT(HostFileError("a: slots=1\n"), HasSubstr("'' is not a valid port"));
  EXPECT_THAT(HostFileError("[fd00::1\n"), HasSubstr("']' is missing"));
  EXPECT_THAT(HostFileError("[fd00::1]22\n"), HasSubstr("only :PORT may follow ']'"));
  EXPECT_THAT(HostFileError("@a\n"), HasSubstr("no user before"));
  EXPECT_THAT(HostFileError("a fast\n"), HasSubstr("'fast' is not understood"));
  EXPECT_THAT(HostFileError("-oProxyCommand=x\n"), HasSubstr("read as an option"));
  EXPECT_THAT(HostFileError("# nothing\n"), HasSubstr("it contains no hosts"));
}

TEST(HostFile, IsTheOneOfTheEnvironmentUnlessGiven) {
  unsetenv("HOSTFILE");
  EXPECT_THROW(ReadHosts(""), std::runtime_error);
  const std::string path = testing::TempDir() + "warren-hosts";
  std::ofstream(path) << "n7 slots=2\n";
  setenv("HOSTFILE", path.c_str(), 1);
  EXPECT_THAT(ReadHosts(""), ElementsAre(Host{"n7", "", 0, 2}));
  EXPECT_THAT([] { ReadHosts("/nonesuch"); },
              ThrowsMessage<std::runtime_error>(HasSubstr("'/nonesuch': No such file or directory")));
  EXPECT_THAT([] { ReadHosts("/etc"); }, ThrowsMessage<std::runtime_error>(
                                             HasSubstr("the host file: cannot read '/etc': Is a directory")));
  unsetenv("HOSTFILE");
  std::remove(path.c_str());
}

TEST(HostFile, PlacesFillTheSlotsInTurnAndBeginAgain) {
  const auto hosts = ParseHosts("a slots=2\nb\n", "f");
  EXPECT_THAT(PlacesOn(hosts, 5), ElementsAre(0, 0, 1, 0, 0));
  EXPECT_THAT(PlacesOn(hosts, 1), ElementsAre(0));
  const auto limited = ParseHosts("a slots=2 max_slots=3\nb max_slots=2\n", "f");
  EXPECT_THAT(PlacesOn(limited, 5), ElementsAre(0, 0, 1, 0, 1));
  EXPECT_THAT([&] { PlacesOn(limited, 6); },
              ThrowsMessage<std::runtime_error>(HasSubstr("room for 5 processes (max_slots), but 6 are")));
}

}  // namespace
}  // namespace warren::submit
