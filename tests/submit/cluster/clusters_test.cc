// The registry of clusters: every entry is complete; help and messages about clusters are derived from it.
#include "submit/cluster/clusters.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "submit/options/help.h"
#include "submit/options/parse.h"

namespace warren::submit {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

std::string WithoutBreaks(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const char plain = c == '\n' ? ' ' : c;
    if (plain != ' ' || out.empty() || out.back() != ' ') out += plain;
  }
  return out;
}

TEST(Clusters, EveryRowIsWhole) {
  std::set<std::string> names;
  for (const ClusterEntry& cluster : Clusters()) {
    EXPECT_TRUE(names.insert(cluster.name).second) << cluster.name;
    EXPECT_FALSE(cluster.name.empty());
    EXPECT_FALSE(cluster.where.empty()) << cluster.name;
    EXPECT_TRUE(cluster.make) << cluster.name;
    EXPECT_TRUE(cluster.show) << cluster.name;
    EXPECT_TRUE(cluster.host) << cluster.name;
    EXPECT_EQ(&FindCluster(cluster.name), &cluster);
  }
}

TEST(Clusters, OptionsOfARowAreInTheTable) {
  for (const ClusterEntry& cluster : Clusters()) {
    for (const std::string& name : cluster.shared_options) {
      const Option* option = AllOptions().Find(name);
      ASSERT_NE(option, nullptr) << cluster.name << " " << name;
      EXPECT_FALSE(option->for_every_cluster) << cluster.name << " " << name;
      EXPECT_TRUE(Heeds(cluster, *option));
    }
    for (const Option& own : cluster.own_options) {
      const Option* option = AllOptions().Find(own.name);
      ASSERT_NE(option, nullptr) << own.name;
      EXPECT_THAT(option->group, HasSubstr("--cluster " + cluster.name));
      for (const ClusterEntry& other : Clusters()) {
        EXPECT_EQ(Heeds(other, *option), other.name == cluster.name) << other.name << " " << own.name;
      }
    }
  }
}

TEST(Clusters, EveryOptionDoesSomethingSomewhereOrIsOneOfThoseWithoutEffect) {
  for (const Option& option : AllOptions().rows()) {
    const bool heeded = std::any_of(Clusters().begin(), Clusters().end(),
                                    [&](const ClusterEntry& cluster) { return Heeds(cluster, option); });
    EXPECT_NE(heeded, option.group == "Without effect") << option.name;
  }
}

TEST(Clusters, OneThatDoesNotBindProcessesSaysWhatDoes) {
  for (const ClusterEntry& cluster : Clusters()) {
    EXPECT_EQ(Heeds(cluster, *AllOptions().Find("--bind")), cluster.bound_by.empty()) << cluster.name;
    if (cluster.bound_by.empty()) continue;
    const std::vector<std::string> words = {"--num-workers", "1",    "--cluster", cluster.name,
                                            "--bind",        "core", "true"};
    EXPECT_THAT([&] { ParseOptions(AllOptions(), words, nullptr); },
                ThrowsMessage<UsageError>(HasSubstr(cluster.bound_by)))
        << cluster.name;
  }
}

TEST(Clusters, EveryClusterIsInTheHelpAndCanBeAskedFor) {
  const std::string help = WithoutBreaks(HelpText(AllOptions()));
  for (const ClusterEntry& cluster : Clusters()) {
    EXPECT_THAT(help, HasSubstr(cluster.name + " (" + cluster.where +
                                (cluster.experimental ? "; experimental)" : ")")));
    EXPECT_THAT(HelpMarkdown(AllOptions()), HasSubstr(cluster.name + " (" + cluster.where));
    std::vector<std::string> words = {"--num-workers", "1", "--cluster", cluster.name};
    if (cluster.check) words.insert(words.end(), {"--kube-worker-image", "image"});
    words.push_back("true");
    EXPECT_EQ(ParseOptions(AllOptions(), words, nullptr).cluster, cluster.name);
  }
}

TEST(Clusters, APythonEnvironmentInTheDirectoryThatIsCopiedIsTheCopy) {
  namespace fs = std::filesystem;
  const fs::path before = fs::current_path();
  fs::create_directories(testing::TempDir() + "warren-copied/venv/bin");
  fs::current_path(testing::TempDir() + "warren-copied");
  std::ofstream("venv/pyvenv.cfg") << "";
  std::ofstream("venv/bin/python") << "";
  fs::permissions("venv/bin/python", fs::perms::owner_all);
  Options options;
  options.cluster = "ssh";
  options.command = {"python"};
  options.environment = {{"PATH", (fs::current_path() / "venv/bin").string()}};
  options.sync_dst_dir = "/scratch/copy";
  EXPECT_EQ(CommandOf(options).argv0, "/scratch/copy/venv/bin/python");
  EXPECT_EQ(CommandOf(options).python_environment, "/scratch/copy/venv");
  options.sync_dst_dir = "copy";  // in the home directory; the processes run in the copy
  EXPECT_EQ(CommandOf(options).argv0, "./venv/bin/python");
  EXPECT_EQ(CommandOf(options).python_environment, "./venv");
  fs::current_path(before);
  fs::remove_all(testing::TempDir() + "warren-copied");
}

TEST(Clusters, OneThatIsGoneIsAnsweredWithWhatToUse) {
  EXPECT_THAT([] { FindCluster("mesos"); },
              ThrowsMessage<std::runtime_error>(testing::AllOf(HasSubstr("use kubernetes, slurm or yarn"),
                                                               Not(HasSubstr("is not one of")))));
}

}  // namespace
}  // namespace warren::submit
