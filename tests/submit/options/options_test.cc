// The option table, and the parser, the help and docs/reference/options.md, which are derived from it.
#include "submit/options/options.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <set>

#include "submit/cluster/clusters.h"
#include "submit/options/help.h"
#include "submit/options/parse.h"
#include "submit/options/table.h"
#include "submit/options/values.h"
#include "submit/process/whole_file.h"

namespace warren::submit {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

Options Parse(const std::vector<std::string>& words) {
  return ParseOptions(AllOptions(), words, nullptr);
}

/// The command line of a job of one worker with these options.
std::vector<std::string> Job(std::vector<std::string> options) {
  options.insert(options.begin(), {"--num-workers", "1"});
  options.emplace_back("run");
  return options;
}

class OptionsTest : public testing::Test {
 protected:
  OptionsTest() { unsetenv("DMLC_SUBMIT_CLUSTER"); }

  /// The error message from parsing these words; empty if they are valid.
  static std::string OptionsError(const std::vector<std::string>& words) {
    try {
      Parse(words);
    } catch (const UsageError& error) {
      return error.what();
    }
    return {};
  }
};

TEST_F(OptionsTest, TheLaunchLineOfMxnetIsUnderstood) {
  Options options = Parse({"-n", "8", "-s", "2", "-H", "hosts", "--launcher", "ssh", "--sync-dst-dir",
                           "/tmp/job", "--mode", "mpi", "python", "train.py", "--kv-store", "dist_sync_mpi"});
  EXPECT_EQ(options.num_workers, 8);
  EXPECT_EQ(options.num_servers, 0);
  EXPECT_EQ(options.host_file, "hosts");
  EXPECT_EQ(options.cluster, "ssh");
  EXPECT_EQ(options.sync_dst_dir, "/tmp/job");
  EXPECT_THAT(options.ignored, ElementsAre("--num-servers"));
  EXPECT_THAT(options.command, ElementsAre("python", "train.py", "--kv-store", "dist_sync_mpi"));

  options = Parse({"-n=2", "-s=1", "--hostfile", "hosts", "--launcher=local", "python"});
  EXPECT_EQ(options.num_workers, 2);
  EXPECT_EQ(options.num_servers, 1);
  EXPECT_THAT(OptionsError({"-n", "0", "run"}), HasSubstr("--num-workers"));
  EXPECT_THAT(OptionsError({"-n", "1", "--mode", "gossip", "run"}), HasSubstr("ps"));
}

TEST_F(OptionsTest, CommandBeginsAtTheFirstWordThatIsNoOption) {
  const Options options =
      Parse({"--num-workers", "3", "./train", "--num-workers", "9", "--", "-x", "", "a b"});
  EXPECT_EQ(options.num_workers, 3);
  EXPECT_THAT(options.command, ElementsAre("./train", "--num-workers", "9", "--", "-x", "", "a b"));
}

TEST_F(OptionsTest, TheDashboardTakesNoWordBehindIt) {
  Options options = Parse({"--num-workers", "1", "--dashboard", "./train", "8080"});
  EXPECT_EQ(options.dashboard, WebAddress{});
  EXPECT_THAT(options.command, ElementsAre("./train", "8080"));
  options = Parse({"--dashboard=0.0.0.0:8080", "--num-workers", "1", "./train"});
  EXPECT_EQ(options.dashboard, (WebAddress{"0.0.0.0", 8080}));
  EXPECT_EQ(options.metrics, std::nullopt);
  options = Parse({"--metrics-port", "[::1]:9100", "--dashboard", "--num-workers", "1", "./train"});
  EXPECT_EQ(options.metrics, (WebAddress{"::1", 9100}));
  EXPECT_EQ(options.dashboard, options.metrics) << "both have one port";
  options = Parse({"--metrics-port", "0.0.0.0:9100", "--dashboard", "--num-workers", "1", "./train"});
  EXPECT_EQ(options.dashboard, WebAddress{}) << "the page is not for other hosts unless that is asked for";
  EXPECT_THAT(OptionsError({"--num-workers", "1", "--dashboard", "8080", "./train"}),
              HasSubstr("--dashboard=8080"));
  EXPECT_THAT(OptionsError({"--num-workers", "1", "--dashboard=x", "./train"}), HasSubstr("[HOST:]PORT"));
}

TEST_F(OptionsTest, WorkersMayListenAtARangeOfPorts) {
  EXPECT_EQ(Parse({"--num-workers", "1", "--worker-ports", "9000:9100", "./train"}).worker_ports,
            "9000:9100");
  for (const auto& [value, said] :
       {std::pair("9000", "'9000' is not FIRST:LAST"), std::pair("9100:9000", "FIRST is greater than LAST"),
        std::pair("0:9", "'0' is too small"), std::pair("9000:65536", "'65536' is too big")}) {
    EXPECT_THAT(OptionsError({"--num-workers", "1", "--worker-ports", value, "./train"}), HasSubstr(said))
        << value;
  }
}

TEST_F(OptionsTest, DoubleDashEndsTheOptions) {
  const Options options = Parse({"--num-workers=3", "--", "--odd", "--", "x"});
  EXPECT_THAT(options.command, ElementsAre("--odd", "--", "x"));
}

TEST_F(OptionsTest, ValuesMayLookLikeOptionsListsOrNothing) {
  const Options options = Parse(
      Job({"--jobname", "--queue", "--queue", "[a,b]", "--host-file", "", "--files", "[x]", "--files={y}"}));
  EXPECT_EQ(options.job_name, "--queue");
  EXPECT_EQ(options.queue, "[a,b]");
  EXPECT_EQ(options.host_file, "");
  EXPECT_THAT(options.files, ElementsAre("[x]", "{y}"));
}

TEST_F(OptionsTest, LastOfARepeatedOptionCounts) {
  EXPECT_EQ(Parse(Job({"--num-workers", "2"})).num_workers, 2);
}

TEST_F(OptionsTest, EnvironmentValuesAreKeptExactly) {
  setenv("WARREN_OPTIONS_TEST", "now", 1);
  const Options options =
      Parse(Job({"--env", "A= b=c\n$HOME '", "--env", "B=", "--env", "WARREN_OPTIONS_TEST"}));
  EXPECT_THAT(options.environment,
              ElementsAre(Pair("A", " b=c\n$HOME '"), Pair("B", ""), Pair("WARREN_OPTIONS_TEST", "now")));
}

TEST_F(OptionsTest, EnvironmentVariableThatIsNotSetIsAnError) {
  unsetenv("WARREN_OPTIONS_TEST");
  EXPECT_THAT(OptionsError(Job({"--env", "WARREN_OPTIONS_TEST"})),
              HasSubstr("WARREN_OPTIONS_TEST is not set"));
  EXPECT_THAT(OptionsError(Job({"--env", "=x"})), HasSubstr("neither KEY=VALUE nor KEY"));
}

TEST_F(OptionsTest, UnknownOptionIsNamedWithTheNearestKnownOne) {
  EXPECT_EQ(OptionsError({"--num-wrokers", "3", "run"}),
            "unknown option '--num-wrokers'; did you mean --num-workers");
  EXPECT_EQ(OptionsError({"--logdir", "x", "run"}), "unknown option '--logdir'; did you mean --log-dir");
  EXPECT_EQ(OptionsError({"-num", "3", "run"}), "unknown option '-num'; did you mean --num-workers");
}

TEST_F(OptionsTest, OptionsAreTakenInTheFormsOfArgparse) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"-n2", "run"},
                                                                                     {"-np", "2", "run"},
                                                                                     {"--num-w=2", "run"},
                                                                                     {"-qn2", "run"},
                                                                                     {"-q", "-n=2", "run"}}) {
    EXPECT_EQ(Parse(words).num_workers, 2) << words.front();
  }
  EXPECT_EQ(Parse({"-Hhosts", "-n2", "-s1", "run"}).host_file, "hosts");
  EXPECT_EQ(Parse({"-h"}).request, Request::kHelp);
  EXPECT_EQ(Parse({"-n", "2", "-h", "--vers"}).request, Request::kVersion);
  EXPECT_EQ(OptionsError({"--log", "x", "run"}),
            "ambiguous option '--log': it could be --log-dir, --log-level, --log-file, --log-format");
  const Options options = Parse({"-n2", "run", "-n3", "-np", "4", "-h", "--num-w=5", "--dry"});
  EXPECT_EQ(options.num_workers, 2);
  EXPECT_FALSE(options.dry_run);
  EXPECT_THAT(options.command, ElementsAre("run", "-n3", "-np", "4", "-h", "--num-w=5", "--dry"));
}

TEST_F(OptionsTest, NumberOfWorkersMustBeASensibleNumber) {
  EXPECT_THAT(OptionsError({"run"}), HasSubstr("--num-workers N is missing"));
  for (const char* name : {"--num-workers", "-n", "-np"}) {
    EXPECT_EQ(OptionsError({"run", name, "3"}),
              std::string("--num-workers N is missing: the ") + name +
                  " after the command belongs to the command; options of dmlc-submit go before it");
  }
  EXPECT_EQ(OptionsError({"--num-workers"}), "--num-workers needs a value: --num-workers N");
  for (const char* small : {"0", "-3"}) {
    EXPECT_THAT(OptionsError({"--num-workers", small, "run"}), HasSubstr("is too small; the minimum is 1"))
        << small;
  }
  for (const char* word : {"three", "3x", "", " 3", "1.5", "0x3"}) {
    EXPECT_THAT(OptionsError({"--num-workers", word, "run"}), HasSubstr("is not a whole number")) << word;
  }
  for (const char* big : {"1048577", "99999999999999999999999"}) {
    EXPECT_THAT(OptionsError({"--num-workers", big, "run"}), HasSubstr("is too big")) << big;
  }
}

TEST_F(OptionsTest, CommandMustBeThere) {
  EXPECT_THAT(OptionsError({"--num-workers", "3"}), HasSubstr("the command to run is missing"));
  EXPECT_THAT(OptionsError({"--num-workers", "3", "--"}), HasSubstr("the command to run is missing"));
  EXPECT_THAT(OptionsError({"--num-workers", "3", ""}), HasSubstr("empty word"));
}

TEST_F(OptionsTest, CheckDataIsToldToTheProcesses) {
  const std::vector<std::pair<std::string, std::string>> told = {{"WARREN_CHECK_DATA", "1"}};
  EXPECT_EQ(Parse(Job({"--check-data"})).environment, told);
}

TEST_F(OptionsTest, FlagTakesNoValue) {
  EXPECT_EQ(OptionsError(Job({"--dry-run=yes"})), "--dry-run takes no value");
}

TEST_F(OptionsTest, ClusterComesFromTheOptionThenTheEnvironmentThenIsLocal) {
  const std::vector<std::string> plain = {"--num-workers", "1", "run"};
  EXPECT_EQ(Parse(plain).cluster, "local");
  EXPECT_FALSE(Parse(plain).cluster_was_chosen);
  setenv("DMLC_SUBMIT_CLUSTER", "slurm", 1);
  EXPECT_EQ(Parse(plain).cluster, "slurm");
  EXPECT_EQ(Parse({"--cluster", "ssh", "--num-workers", "1", "run"}).cluster, "ssh");
  setenv("DMLC_SUBMIT_CLUSTER", "moon", 1);
  EXPECT_THAT(OptionsError(plain),
              HasSubstr("DMLC_SUBMIT_CLUSTER in the environment: 'moon' is not one of local"));
  unsetenv("DMLC_SUBMIT_CLUSTER");
}

TEST_F(OptionsTest, OptionsOfOtherClustersAreReported) {
  EXPECT_THAT(Parse(Job({"--queue", "q", "--worker-memory", "4g"})).ignored,
              ElementsAre("--worker-memory", "--queue"));
  EXPECT_THAT(Parse(Job({"--files", "f"})).ignored, IsEmpty());
  EXPECT_THAT(Parse(Job({"--num-servers", "1", "--timeout", "9"})).ignored, ElementsAre("--timeout"));
  EXPECT_THAT(Parse(Job({"--timeout", "9"})).ignored, IsEmpty());
}

TEST_F(OptionsTest, OptionsWithoutEffectBesideOthersAreReported) {
  const auto ignored = [](const std::vector<std::string>& words) { return Parse(Job(words)).ignored; };
  const std::vector<std::string> of_tracker = {"--sortby", "task", "--admit", "any", "--timeout", "9"};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.end(), of_tracker.begin(), of_tracker.end());
    return words;
  };
  EXPECT_THAT(ignored(with({})), IsEmpty());
  EXPECT_THAT(ignored(with({"--no-tracker"})), ElementsAre("--sortby", "--admit", "--timeout"));
  EXPECT_THAT(ignored(with({"--num-servers", "1"})), ElementsAre("--sortby", "--admit", "--timeout"));
  EXPECT_THAT(ignored({"--cluster", "mpi", "--worker-memory", "1g", "--server-cores", "2", "--server-memory",
                       "1g", "--queue", "q", "--host-file", "f"}),
              ElementsAre("--worker-memory", "--server-cores", "--server-memory", "--queue"));
}

TEST_F(OptionsTest, OptionsOfTheTrackersPodAreReportedWithoutOne) {
  const auto ignored = [](std::vector<std::string> words) {
    words.insert(words.begin(),
                 {"--cluster", "kubernetes", "--kube-worker-image", "w", "--kube-tracker-image", "t",
                  "--kube-tracker-template", "f", "--timeline", "g"});
    return Parse(Job(words)).ignored;
  };
  EXPECT_THAT(ignored({}), ElementsAre("--timeline")) << "its tracker is a pod";
  EXPECT_THAT(ignored({"--host-ip", "10.0.0.1"}),
              ElementsAre("--kube-tracker-image", "--kube-tracker-template"));
  EXPECT_THAT(ignored({"--no-tracker"}), ElementsAre("--kube-tracker-image", "--kube-tracker-template"));
  EXPECT_THAT(ignored({"--no-tracker", "--host-ip", "10.0.0.1", "--port", "9"}),
              ElementsAre("--host-ip", "--port", "--kube-tracker-image", "--kube-tracker-template"));
  EXPECT_THAT(ignored({"--num-servers", "1", "--host-ip", "10.0.0.1"}),
              ElementsAre("--host-ip", "--timeline", "--kube-tracker-image", "--kube-tracker-template"));
}

TEST_F(OptionsTest, AnAllocationOfSlurmHasItsQueueAndTimeLimit) {
  const std::vector<std::string> words = Job({"--cluster", "slurm", "--queue", "q", "--time-limit", "9"});
  const char* const allocation = std::getenv("SLURM_JOB_ID");
  if (allocation != nullptr) GTEST_SKIP() << "runs in an allocation";
  EXPECT_THAT(Parse(words).ignored, IsEmpty());
  setenv("SLURM_JOB_ID", "7", 1);
  EXPECT_THAT(Parse(words).ignored, ElementsAre("--time-limit", "--queue"));
  unsetenv("SLURM_JOB_ID");
}

TEST_F(OptionsTest, ChoicesListWhatIsPossible) {
  EXPECT_EQ(OptionsError(Job({"--sortby", "rank"})), "--sortby: 'rank' is not one of host, task");
  EXPECT_FALSE(Parse(Job({"--auto-file-cache", "off"})).auto_file_cache);
  EXPECT_FALSE(Parse(Job({"--auto-file-cache", "False"})).auto_file_cache);
  EXPECT_TRUE(Parse(Job({"--auto-file-cache", "1"})).auto_file_cache);
  EXPECT_TRUE(Parse(Job({"--log-level", "DEBUG"})).debug_log);
}

TEST_F(OptionsTest, TimeoutIsInSecondsAndMayBeAFraction) {
  using std::chrono::milliseconds;
  const auto timeout = [](const char* text) { return Parse(Job({"--timeout", text})).timeout; };
  EXPECT_EQ(timeout("2"), milliseconds(2000));
  EXPECT_EQ(timeout("0.5"), milliseconds(500));
  EXPECT_EQ(timeout("0"), milliseconds(0));
  EXPECT_EQ(timeout("0.0001"), milliseconds(1));
  for (const char* bad : {"-1", "soon", "1e3", "nan", "inf", "", "1s"}) {
    EXPECT_THAT(OptionsError(Job({"--timeout", bad})), HasSubstr("--timeout")) << bad;
    EXPECT_THAT(OptionsError(Job({"--hang-timeout", bad})), HasSubstr("--hang-timeout")) << bad;
  }
}

TEST_F(OptionsTest, PortsAreARange) {
  const Options high = Parse(Job({"--port", "20000"}));
  EXPECT_EQ(high.port, 20000);
  EXPECT_EQ(high.port_end, 20000);
  EXPECT_FALSE(high.port_end_was_chosen);
  EXPECT_TRUE(Parse(Job({"--port-end", "20000"})).port_end_was_chosen);
  EXPECT_EQ(OptionsError(Job({"--port", "9100", "--port-end", "9000"})),
            "--port-end 9000 is below --port 9100");
  EXPECT_THAT(OptionsError(Job({"--port", "65536"})), HasSubstr("too big"));
}

TEST_F(OptionsTest, HelpNeedsNothingElse) {
  EXPECT_EQ(Parse({"--help"}).request, Request::kHelp);
  EXPECT_EQ(Parse({"--version", "x"}).request, Request::kVersion);
}

TEST_F(OptionsTest, EveryOptionHasAUniqueNameAHelpAndAPlaceInBothTexts) {
  std::set<std::string_view> names;
  const std::string help = HelpText(AllOptions());
  const std::string page = HelpMarkdown(AllOptions());
  for (const Option& option : AllOptions().rows()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    EXPECT_EQ(option.name.substr(0, 2), "--") << option.name;
    EXPECT_FALSE(option.help.empty()) << option.name;
    EXPECT_THAT(help, HasSubstr("\n  " + std::string(option.name)));
    EXPECT_THAT(page, HasSubstr("| `" + std::string(option.name)));
  }
}

TEST_F(OptionsTest, StockOptionsAreAllKnown) {
  std::set<std::string_view> names;
  for (const Option& option : AllOptions().rows()) names.insert(option.name);
  for (const char* name : {"--cluster",
                           "--num-workers",
                           "--worker-cores",
                           "--worker-memory",
                           "--num-servers",
                           "--server-cores",
                           "--server-memory",
                           "--jobname",
                           "--queue",
                           "--log-level",
                           "--log-file",
                           "--host-ip",
                           "--host-file",
                           "--sync-dst-dir",
                           "--auto-file-cache",
                           "--files",
                           "--archives",
                           "--env",
                           "--local-num-attempt",
                           "--sge-log-dir",
                           "--slurm-worker-nodes",
                           "--slurm-server-nodes",
                           "--kube-namespace",
                           "--kube-worker-image",
                           "--kube-server-image",
                           "--kube-worker-template",
                           "--kube-server-template",
                           "--hdfs-tempdir",
                           "--yarn-app-classpath",
                           "--yarn-app-dir",
                           "--mesos-master",
                           "--ship-libcxx"}) {
    EXPECT_EQ(names.count(name), 1U) << name;
  }
}

TEST_F(OptionsTest, OptionsOfOldScriptsWithoutEffectAreTakenAndNamed) {
  EXPECT_THAT(Parse(Job({"--mesos-master", "m:5050", "--ship-libcxx=/opt", "--hdfs-tempdir", "/t"})).ignored,
              ElementsAre("--hdfs-tempdir", "--mesos-master", "--ship-libcxx"));
}

TEST_F(OptionsTest, VariablesOfOneRoleAreRefusedWithWhatToDo) {
  for (const std::string name : {"--env-worker", "--env-server"}) {
    EXPECT_THAT(OptionsError(Job({name, "A:b"})), testing::AllOf(HasSubstr(name), HasSubstr("DMLC_ROLE")));
  }
}

TEST_F(OptionsTest, HelpFitsATerminal) {
  const std::string help = HelpText(AllOptions());
  std::size_t begin = 0;
  for (std::size_t end = help.find('\n'); end != std::string::npos; end = help.find('\n', begin = end + 1)) {
    EXPECT_LE(end - begin, 100U) << help.substr(begin, end - begin);
  }
}

TEST_F(OptionsTest, OptionsPageOfTheDocumentationIsWhatTheTableSays) {
  EXPECT_EQ(ReadWholeFile(WARREN_OPTIONS_PAGE), HelpMarkdown(AllOptions()))
      << "write it anew: dmlc-submit --help-markdown > docs/reference/options.md";
}

TEST(MemorySize, TakesUnitsInEitherCaseAndFractions) {
  EXPECT_EQ(ParseMemorySize("4g"), std::uint64_t{4} << 30);
  EXPECT_EQ(ParseMemorySize("1.5G"), std::uint64_t{3} << 29);
  EXPECT_EQ(ParseMemorySize("512M"), std::uint64_t{512} << 20);
  EXPECT_EQ(ParseMemorySize("64k"), std::uint64_t{64} << 10);
  EXPECT_EQ(ParseMemorySize("2t"), std::uint64_t{2} << 40);
  EXPECT_EQ(ParseMemorySize(".5m"), std::uint64_t{1} << 19);
}

TEST(MemorySize, RefusesWhatIsNone) {
  for (const char* bad : {"", "g", "4", "4x", "-4g", "4 g", "four g", "1e3g", "nang", "infg", "0g",
                          "99999999t", "1.2.3g", "+4g"}) {
    EXPECT_THROW(ParseMemorySize(bad), std::runtime_error) << bad;
  }
}

}  // namespace
}  // namespace warren::submit
