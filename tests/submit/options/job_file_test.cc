// Job files: their contents, their combination with the command line, and their schema. A saved job file
// must yield the same options again.
#include "submit/options/job_file.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>

#include "submit/cluster/clusters.h"
#include "submit/options/help.h"
#include "submit/options/parse.h"
#include "submit/options/value_hint.h"
#include "submit/process/whole_file.h"
#include "tests/random_cases.h"

namespace warren::submit {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::StartsWith;

constexpr const char* kWhole = "num-workers: 2\ncommand: [run]\n";

class JobFileTest : public testing::Test {
 protected:
  JobFileTest() {
    unsetenv("DMLC_SUBMIT_CLUSTER");
    unsetenv("WARREN_UNSET");
    setenv("WARREN_JOB_FILE_TEST", "now", 1);
  }
  ~JobFileTest() override { unsetenv("DMLC_SUBMIT_CLUSTER"); }

  /// The options of a command line with `--job job.yaml` before `words`. `file`: the contents of job.yaml.
  static Options With(const std::string& file, std::vector<std::string> words = {}) {
    words.insert(words.begin(), {"--job", "job.yaml"});
    return ParseOptions(AllOptions(), words, [&](const std::string& path) {
      EXPECT_EQ(path, "job.yaml");
      return file;
    });
  }

  static Options Without(const std::vector<std::string>& words) {
    return ParseOptions(AllOptions(), words, nullptr);
  }

  /// The error message for a job file with these contents; empty if it is valid.
  static std::string Error(const std::string& file, const std::vector<std::string>& words = {}) {
    try {
      With(file, words);
    } catch (const UsageError& error) {
      return error.what();
    }
    return {};
  }
};

TEST_F(JobFileTest, OptionsHaveTheirLongNamesWithDashesOrUnderscores) {
  const Options options = With(
      "num-workers: 4\ncluster: ssh\nhost_file: hosts\nfiles: [a, b]\narchives: c.zip\ntls: true\nquiet: false\n"
      "timeout: 0.5\nport: 9100\ntime-limit: 1:30:00\ndashboard: 8080\nmetrics-port: 0.0.0.0:9200\n"
      "local_num_attempt: 3\nssh-options: -i key -J jump\ncommand: [python3, train.py, 4, true, -x, '']\n");
  EXPECT_EQ(options.num_workers, 4);
  EXPECT_EQ(options.cluster, "ssh");
  EXPECT_EQ(options.host_file, "hosts");
  EXPECT_THAT(options.files, ElementsAre("a", "b"));
  EXPECT_THAT(options.archives, ElementsAre("c.zip"));
  EXPECT_TRUE(options.tls);
  EXPECT_FALSE(options.quiet);
  EXPECT_EQ(options.timeout, std::chrono::milliseconds(500));
  EXPECT_EQ(options.port, 9100);
  EXPECT_TRUE(options.port_was_chosen);
  EXPECT_EQ(options.time_limit, "1:30:00");
  EXPECT_EQ(options.dashboard, (WebAddress{"127.0.0.1", 8080}));
  EXPECT_EQ(options.metrics, (WebAddress{"0.0.0.0", 9200}));
  EXPECT_EQ(options.num_restarts, 3);
  EXPECT_THAT(options.ssh_options, ElementsAre("-i", "key", "-J", "jump"));
  EXPECT_THAT(options.command, ElementsAre("python3", "train.py", "4", "true", "-x", ""));
  EXPECT_THAT(options.ignored, ElementsAre("--time-limit"));

  EXPECT_EQ(With("launcher: ssh\nhostfile: hosts\nnum-workers: 1\ncommand: run\n").host_file, "hosts");
  EXPECT_EQ(With("num-workers: \"2:4\"\ncommand: run\ncluster: local\n").min_workers, 2);
  EXPECT_EQ(With("num-workers: 1\ncommand: run\ndashboard: true\n").dashboard, WebAddress{});
  EXPECT_EQ(With("num-workers: 1\ncommand: run\ndashboard: false\n").dashboard, std::nullopt);
  EXPECT_FALSE(With("num-workers: 1\ncommand: run\nauto-file-cache: off\n").auto_file_cache);
  EXPECT_FALSE(With("num-workers: 1\ncommand: run\nauto-file-cache: false\n").auto_file_cache);
  EXPECT_TRUE(With("num-workers: 1\ncommand: run\ntls: yes\n").tls);
}

TEST_F(JobFileTest, ValuesArePassedOnAsTheyAreWrittenAndNothingIsExpanded) {
  const auto environment = [](const std::string& env) {
    return With("num-workers: 1\ncommand: run\nenv: " + env + "\n").environment;
  };
  EXPECT_THAT(environment("{A: 1.0, B: yes, C: 0x10, D: \"\", E: \"$HOME ${HOME}\", F: 'a\\n', G: \"a\\n\"}"),
              ElementsAre(Pair("A", "1.0"), Pair("B", "yes"), Pair("C", "0x10"), Pair("D", ""),
                          Pair("E", "$HOME ${HOME}"), Pair("F", "a\\n"), Pair("G", "a\n")));
  EXPECT_THAT(environment("[A=1, WARREN_JOB_FILE_TEST, 'B=x y']"),
              ElementsAre(Pair("A", "1"), Pair("WARREN_JOB_FILE_TEST", "now"), Pair("B", "x y")));
  EXPECT_THAT(environment("A=1=2"), ElementsAre(Pair("A", "1=2")));
  EXPECT_EQ(With("num-workers: 1\ncommand: run\nqueue: 010\njobname: \"true\"\n").job_name, "true");
  EXPECT_EQ(With("num-workers: 1\ncommand: run\nqueue: 010\n").queue, "010");
}

TEST_F(JobFileTest, CommandIsAListOrATextThatIsSplitAsAShellDoes) {
  const auto command = [](const std::string& text) {
    return With("num-workers: 1\ncommand: " + text + "\n").command;
  };
  EXPECT_THAT(command("sh -c 'echo $RANK | cat' \"a \\\" b\" *"),
              ElementsAre("sh", "-c", "echo $RANK | cat", "a \" b", "*"));
  EXPECT_THAT(command("|\n  python3 train.py \\\n    --depth 4\n  --last"),
              ElementsAre("python3", "train.py", "--depth", "4", "--last"));
  EXPECT_THAT(command("[a > b, '|', \"$x\"]"), ElementsAre("a > b", "|", "$x"));
  EXPECT_EQ(
      Error("num-workers: 1\ncommand: a | b\n"),
      "job.yaml:2:10: command: no shell reads '|'; write [sh, -c, '...'] to run a shell, or a list of words to "
      "pass '|' to the program");
  EXPECT_EQ(Error("num-workers: 1\ncommand: echo \"a\n"),
            "job.yaml:2:10: command: unmatched \" in: echo \"a");
  EXPECT_EQ(Error("command: []\n"), "job.yaml:1:10: command: the command has no words");
  EXPECT_EQ(Error("command: ''\n"), "job.yaml:1:10: command: the command has no words");
  EXPECT_EQ(Error("command: {a: b}\n"),
            "job.yaml:1:10: command: expected one value, not keys with values of their own");
  EXPECT_EQ(Error("command: [a, [b]]\n"), "job.yaml:1:14: command: expected one value, not a list");
  EXPECT_EQ(
      Error("command: [a, ~]\n"),
      "job.yaml:1:10: command: a value is missing; write \"\" for an empty one, \"null\" for that word");
}

TEST_F(JobFileTest, CommandLineReplacesOptionsOfTheFile) {
  const std::string file =
      "num-workers: 2\ncluster: ssh\nfiles: [a, b]\nenv: [A=1]\njobname: j\ncommand: run in file\n";
  Options options = With(file);
  EXPECT_EQ(options.job_file, "job.yaml");
  EXPECT_THAT(options.command, ElementsAre("run", "in", "file"));
  options = With(file, {"-n", "3", "--files", "c", "--env", "B=2", "--env", "C=3", "./train", "x"});
  EXPECT_EQ(options.num_workers, 3);
  EXPECT_EQ(options.cluster, "ssh");
  EXPECT_EQ(options.job_name, "j");
  EXPECT_THAT(options.files, ElementsAre("c"));
  EXPECT_THAT(options.environment, ElementsAre(Pair("B", "2"), Pair("C", "3")));
  EXPECT_THAT(options.command, ElementsAre("./train", "x"));
  EXPECT_THAT(With(file, {"--", "--odd"}).command, ElementsAre("--odd"));
  EXPECT_EQ(Error("env: [WARREN_UNSET]\n" + std::string(kWhole), {"--env", "A=1"}), "");
  EXPECT_EQ(With("num-workers: 2\n", {"run"}).num_workers, 2);
}

TEST_F(JobFileTest, FileDecidesBeforeTheEnvironment) {
  setenv("DMLC_SUBMIT_CLUSTER", "slurm", 1);
  EXPECT_EQ(With(kWhole).cluster, "slurm");
  EXPECT_TRUE(With(kWhole).cluster_is_from_environment);
  EXPECT_EQ(With(std::string("cluster: ssh\n") + kWhole).cluster, "ssh");
  EXPECT_FALSE(With(std::string("cluster: ssh\n") + kWhole).cluster_is_from_environment);
  EXPECT_EQ(With(std::string("cluster: ssh\n") + kWhole, {"--cluster", "local"}).cluster, "local");
}

TEST_F(JobFileTest, FileIsReadOnlyIfItIsNeeded) {
  const auto read = [](const std::string&) -> std::string { throw std::runtime_error("cannot read it"); };
  EXPECT_EQ(ParseOptions(AllOptions(), {"--job", "x", "--help"}, read).request, Request::kHelp);
  EXPECT_THAT(
      [&] {
        ParseOptions(AllOptions(), {"--job", "x", "--show-hosts"}, read);
      },
      testing::ThrowsMessage<UsageError>("--job: cannot read it"));
  EXPECT_EQ(With("host-file: h\n", {"--show-hosts"}).host_file, "h");
  EXPECT_EQ(With("host-file: h\n", {"--show-hosts"}).request, Request::kShowHosts);
}

TEST_F(JobFileTest, MistakesHaveTheFileTheLineAndTheColumn) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"# x\nnum_worker: 4\n", "2:1: num_worker: there is no such option; did you mean num-workers?"},
      {"--tls: true\n", "1:1: --tls: there is no such option; did you mean tls?"},
      {"comand: x\n", "1:1: comand: there is no such option; did you mean command?"},
      {"n: 4\n", "1:1: n: there is no such option; did you mean num-workers?"},
      {"qqqqqqqqqqq: 4\n", "1:1: qqqqqqqqqqq: there is no such option; dmlc-submit --help lists them"},
      {"num-workers: 4\nnum_workers: 5\n",
       "2:1: num_workers: num-workers is already given in line 1; keep one of the two"},
      {"cluster: ssh\nlauncher: ssh\n",
       "2:1: launcher: cluster is already given in line 1; keep one of the two"},
      {"command: a\ncommand: b\n", "2:1: command: command is already given in line 1; keep one of the two"},
      {"help: true\n", "1:1: help: this option is for command lines, not for job files"},
      {"show_hosts: true\n", "1:1: show_hosts: this option is for command lines, not for job files"},
      {"completion: bash\n", "1:1: completion: this option is for command lines, not for job files"},
      {"versio: true\n", "1:1: versio: there is no such option; dmlc-submit --help lists them"},
      {"job: other.yaml\n", "1:1: job: this option is for command lines, not for job files"},
      {"save: other.yaml\n", "1:1: save: this option is for command lines, not for job files"},
      {"num-workers: 4\nsortby:   rank\n", "2:11: sortby: 'rank' is not one of host, task"},
      {"num-workers: four\n", "1:14: num-workers: 'four' is not a whole number"},
      {"num-workers: 4.0\n", "1:14: num-workers: '4.0' is not a whole number"},
      {"num-workers: [4]\n", "1:14: num-workers: expected one value, not a list"},
      {"num-workers: {a: 4}\n", "1:14: num-workers: expected one value, not keys with values of their own"},
      {"num-workers:\ntls: true\n",
       "1:1: num-workers: a value is missing; write \"\" for an empty one, \"null\" for that word"},
      {"queue: null\n",
       "1:1: queue: a value is missing; write \"\" for an empty one, \"null\" for that word"},
      {"log-file: true\n",
       "1:11: log-file: expected a value, not true; if that is the value, put it in quotes"},
      {"files: true\n", "1:8: files: expected a value, not true; if that is the value, put it in quotes"},
      {"color: true\n", "1:8: color: 'true' is not one of auto, always, never"},
      {"tls: 1\n", "1:6: tls: expected true or false"},
      {"tls: 'true'\n", "1:6: tls: expected true or false"},
      {"tls:\n", "1:1: tls: expected true or false"},
      {"tls: [true]\n", "1:6: tls: expected true or false"},
      {"files: [a, [b]]\n", "1:12: files: expected one value, not a list"},
      {"files: {a: b}\n", "1:8: files: expected one value, not keys with values of their own"},
      {"env:\n  A: 1\n  A: 2\n", "3:3: env: A is given twice; keep one of the two"},
      {"env:\n  A: 1\n  B:\n",
       "3:3: env: a value is missing; write \"\" for an empty one, \"null\" for that word"},
      {"env: {A=B: 1}\n", "1:7: env: 'A=B' contains '='; a name cannot"},
      {"env:\n- A=1\n- =2\n", "3:3: env: '=2' is neither KEY=VALUE nor KEY"},
      {"env: [WARREN_UNSET]\n",
       "1:7: env: WARREN_UNSET is not set in the environment; write --env "
       "WARREN_UNSET=VALUE to give it a value"},
      {"queue: \"a\\0b\"\n", "1:8: queue: a value cannot contain the character \\0"},
      {"queue: !secret a\n", "1:8: the tag !secret is not possible in a job file; remove it"},
      {"num-workers: !!int 4\n",
       "1:14: the tag tag:yaml.org,2002:int is not possible in a job file; remove it"},
      {"files: [!x a]\n", "1:9: the tag !x is not possible in a job file; remove it"},
      {"[a]: 1\n", "1:1: expected the name of an option, or command"},
      {"- num-workers: 4\n", "1:1: expected options, one per line, such as num-workers: 4"},
      {"num-workers 4\n", "1:1: expected options, one per line, such as num-workers: 4"},
      {"num-workers: 4\n---\ntls: true\n", "2:1: a second document begins here; a job file has only one"},
  };
  for (const auto& [file, error] : cases) EXPECT_EQ(Error(file), "job.yaml:" + error) << file;
  // From version 0.9 on, yaml-cpp reports these mistakes itself, with its own messages.
  EXPECT_THAT(Error(","), StartsWith("job.yaml:1:1: not valid YAML: "));
  EXPECT_THAT(Error("tls: true\n...\n,\n"),
              testing::AnyOf("job.yaml:3:1: a second document begins here; a job file has only one",
                             StartsWith("job.yaml:3:1: not valid YAML: ")));
  for (const char* empty : {"", "\n", "# nothing\n", "---\n", "~\n"}) {
    EXPECT_EQ(Error(empty),
              "job.yaml: the file is empty; it needs options, one per line, such as num-workers: 4")
        << empty;
  }
  EXPECT_EQ(
      Error("command: run\n"),
      "--num-workers N is missing: the number of workers to start (on the command line and in job.yaml together)");
}

TEST_F(JobFileTest, AnchorsAreFine) {
  const Options options =
      With("num-workers: &n 3\nnum-servers: *n\nfiles: &f [a, b]\narchives: *f\ncommand: run\n");
  EXPECT_EQ(options.num_servers, 3);
  EXPECT_THAT(options.archives, ElementsAre("a", "b"));
}

TEST_F(JobFileTest, SavedFileHasWhatWasGivenInTableOrder) {
  const Options options =
      Without({"--save",        "x.yaml",      "-q",      "--files", "b",         "--env", "A=1",
               "--num-workers", "2:4",         "--files", "a",       "--timeout", "5",     "--timeout",
               "0.5",           "--dashboard", "--queue", "12",      "run",       "4",     "two words"});
  EXPECT_EQ(options.request, Request::kSave);
  EXPECT_EQ(options.save_file, "x.yaml");
  EXPECT_EQ(options.saved_job,
            "num-workers: \"2:4\"\nenv:\n  - \"A=1\"\nfiles:\n  - b\n  - a\ntimeout: 0.5\ndashboard: true\n"
            "quiet: true\nqueue: \"12\"\ncommand:\n  - run\n  - \"4\"\n  - \"two words\"\n");
  EXPECT_EQ(With("num-workers: 1\nenv: {A: 1}\ncommand: run\n", {"--save", "-", "-n", "3"}).saved_job,
            "num-workers: 3\nenv:\n  - \"A=1\"\ncommand:\n  - run\n");
  EXPECT_THROW(Without({"--save", "x", "-n", "1", "run", "\xff"}), UsageError);
  EXPECT_THROW(Without({"--save", "x", "-n", "1"}), UsageError);
  EXPECT_THROW(Without({"--save", "", "-n", "1", "run"}), UsageError);
  EXPECT_THROW(Without({"--job", "", "-n", "1", "run"}), UsageError);
}

// --- random command lines ---------------------------------------------------------------------------------

/// Strings that YAML, a shell or a command line might change.
const std::vector<std::string> kTexts = {"plain",
                                         "a b",
                                         "",
                                         "it's",
                                         "\"quoted\"",
                                         "$HOME",
                                         "true",
                                         "No",
                                         "null",
                                         "~",
                                         "12",
                                         "0x10",
                                         "1:30:00",
                                         "- x",
                                         "-x",
                                         "#c",
                                         "a: b",
                                         "a:",
                                         "two\nlines\n",
                                         "\n",
                                         "one\n\n two\n",
                                         "\ttab\n",
                                         "a\r\n",
                                         " before",
                                         "after ",
                                         "|",
                                         ">",
                                         "&a",
                                         "*a",
                                         "!t",
                                         "%d",
                                         "@",
                                         "`id`",
                                         "{a}",
                                         "[a]",
                                         "---",
                                         "...",
                                         "?",
                                         "? a",
                                         "<<",
                                         "na\xc3\xafve",
                                         "\xe6\xbc\xa2",
                                         "\xf0\x9f\x98\x80 \\ud83d",
                                         "\x7f\x01",
                                         "\xc2\x85",
                                         "\xe2\x80\xa8",
                                         "\xef\xbb\xbf",
                                         "\\",
                                         "\\n",
                                         std::string(5000, 'x')};

/// Times, most of which look different after parsing and formatting.
const std::vector<std::string> kSeconds = {"7", "0.5", "030", "5.50", "0.00000001"};

class RandomLine {
 public:
  explicit RandomLine(unsigned seed) : random_(seed) {}

  std::vector<std::string> Next() {
    std::vector<std::string> words = {"--num-workers=" + Count()};
    for (const Option& option : AllOptions().rows()) {
      if (option.only_on_command_line || Below(6) != 0) continue;
      for (unsigned left = option.repeatable ? 1 + Below(3) : 1; left > 0; --left)
        words.push_back(Word(option));
    }
    std::shuffle(words.begin(), words.end(), random_);
    words.insert(words.end(), {"--", "run"});
    for (unsigned left = Below(4); left > 0; --left) words.push_back(Any(kTexts));
    return words;
  }

 private:
  unsigned Below(unsigned limit) { return std::uniform_int_distribution<unsigned>(0, limit - 1)(random_); }
  template <typename List>
  std::string Any(const List& list) {
    return std::string(*(std::begin(list) + Below(static_cast<unsigned>(std::size(list)))));
  }
  std::string Count() { return std::to_string(1 + Below(50)); }

  std::string Word(const Option& option) {
    const std::string name = std::string(option.name);
    const ValueHint hint = HintFor(option);
    if (option.value.empty() || (option.value_is_optional && Below(2) == 0)) return name;
    if (name == "--num-workers") return name + '=' + (Below(2) == 0 ? "2:" : "1") + Count();
    if (hint.kind == ValueKind::kInteger) return name + '=' + Count();
    if (hint.kind == ValueKind::kNumber) return name + '=' + Any(kSeconds);
    if (hint.kind == ValueKind::kChoice) return name + '=' + Any(hint.choices);
    if (TakesMap(option)) return name + '=' + (Below(4) == 0 ? "WARREN_JOB_FILE_TEST" : "A=" + Any(kTexts));
    if (option.value == "SIZE") return name + "=512m";
    if (option.value.find("PORT") != std::string_view::npos)
      return name + (Below(2) == 0 ? "=0.0.0.0:80" : "=0");
    if (option.value == "WORDS") return name + "='" + (Below(2) == 0 ? "a b" : "-x\t\"") + "' c";
    if (name == "--worker-ports") return name + "=9:1" + Count();
    if (name == "--preemption-signal") return name + "=USR1";
    return name + '=' + Any(kTexts);
  }

  std::mt19937 random_;
};

TEST_F(JobFileTest, SavedCommandLineReadsBackAsTheSameOptions) {
  RandomLine random(4711);
  const unsigned cases = RandomCases(4000);
  unsigned valid = 0;
  for (unsigned i = 0; i < cases; ++i) {
    const std::vector<std::string> words = random.Next();
    Options line;
    try {
      line = Without(words);
    } catch (const UsageError&) {
      continue;  // options that contradict each other
    }
    ++valid;
    std::vector<std::string> saving = words;
    saving.insert(saving.begin(), {"--save", "job.yaml"});
    const std::string saved = Without(saving).saved_job;
    Options read = With(saved);
    EXPECT_EQ(With(saved, {"--save", "-"}).saved_job, saved);
    read.job_file.clear();
    ASSERT_TRUE(read == line) << saved;
  }
  EXPECT_GT(valid, cases / 8);
}

// --- the schema -------------------------------------------------------------------------------------------

TEST_F(JobFileTest, SchemaOfTheDocumentationIsWhatTheTableSays) {
  EXPECT_EQ(ReadWholeFile(WARREN_JOB_SCHEMA), HelpSchema(AllOptions()))
      << "write it anew: dmlc-submit --help-schema > docs/reference/job.schema.json";
}

TEST_F(JobFileTest, SchemaHasTheOptionsThatJobFilesMayContain) {
  const auto properties = nlohmann::json::parse(HelpSchema(AllOptions())).at("properties");
  std::size_t count = 1;  // for the command
  for (const Option& option : AllOptions().rows()) {
    EXPECT_NE(properties.contains(option.name.substr(2)), option.only_on_command_line) << option.name;
    count += option.only_on_command_line ? 0 : 1;
  }
  EXPECT_EQ(properties.size(), count);
  EXPECT_EQ(properties.at("tls").at("type"), "boolean");
  EXPECT_EQ(properties.at("port").at("type"), "integer");
  EXPECT_EQ(properties.at("timeout").at("type"), "number");
  EXPECT_EQ(properties.at("sortby").at("enum"), (nlohmann::json{"host", "task"}));
  EXPECT_EQ(properties.at("auto-file-cache").at("enum"), (nlohmann::json{"on", "off", true, false}));
  EXPECT_EQ(properties.at("host-ip").at("anyOf").at(0).at("enum"), (nlohmann::json{"auto", "dns"}));
  EXPECT_EQ(properties.at("num-workers").at("anyOf").size(), 2U);
  EXPECT_EQ(properties.at("files").at("anyOf").size(), 2U);
  EXPECT_EQ(properties.at("env").at("anyOf").size(), 3U);
}

}  // namespace
}  // namespace warren::submit
