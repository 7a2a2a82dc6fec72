// Host files: every form of a line, and what is said about one that is none.
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

std::string ErrorOf(const std::string& text) {
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
  EXPECT_THAT(hosts,
              ElementsAre(Host{"node1", "", 0, 1}, Host{"node2", "", 0, 4}, Host{"node3", "alice", 2222, 2}));
  EXPECT_EQ(hosts[2].Login(), "alice@node3");
}

TEST(HostFile, TakesIpv6AddressesWithAndWithoutPort) {
  EXPECT_THAT(
      ParseHosts("[fd00::1]:2222\nfd00::2\nbob@[fd00::3] slots=3\n", "f"),
      ElementsAre(Host{"fd00::1", "", 2222, 1}, Host{"fd00::2", "", 0, 1}, Host{"fd00::3", "bob", 0, 3}));
}

TEST(HostFile, AHostThatIsNamedAgainGetsTheSlotsOfBothLines) {
  EXPECT_THAT(ParseHosts("a slots=2\nb\na slots=3\na:22\n", "f"),
              ElementsAre(Host{"a", "", 0, 5}, Host{"b", "", 0, 1}, Host{"a", "", 22, 1}));
}

TEST(HostFile, ErrorsNameTheLineAndWhatItShouldBe) {
  EXPECT_THAT(ErrorOf("a\nb slots=none\n"), StartsWith("hosts.txt:2: 'none' is no number of slots"));
  EXPECT_THAT(ErrorOf("a slots=0\n"), HasSubstr("from 1 to"));
  EXPECT_THAT(ErrorOf("a:70000\n"), HasSubstr("'70000' is no port"));
  EXPECT_THAT(ErrorOf("a: slots=1\n"), HasSubstr("'' is no port"));
  EXPECT_THAT(ErrorOf("[fd00::1\n"), HasSubstr("']' is missing"));
  EXPECT_THAT(ErrorOf("[fd00::1]22\n"), HasSubstr("after ']' comes :PORT"));
  EXPECT_THAT(ErrorOf("@a\n"), HasSubstr("no user in front"));
  EXPECT_THAT(ErrorOf("a fast\n"), HasSubstr("'fast' is not understood"));
  EXPECT_THAT(ErrorOf("-oProxyCommand=x\n"), HasSubstr("taken for an option"));
  EXPECT_THAT(ErrorOf("# nothing\n"), HasSubstr("there is no host in it"));
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
}

}  // namespace
}  // namespace warren::submit
