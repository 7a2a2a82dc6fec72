#include "submit/cluster/yarn.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "submit/cluster/gang.h"
#include "submit/cluster/script.h"
#include "submit/options/values.h"
#include "submit/process/command.h"
#include "tracker/host_address.h"

namespace warren::submit {
namespace {

constexpr std::string_view kJarName = "hadoop-yarn-applications-distributedshell-";
/// The distributed shell ends an application after ten minutes by default, and has no value for "never". This
/// is the maximum, in milliseconds: 24 days.
constexpr std::string_view kLongest = "2147483647";

std::string ApplicationName(const std::string& job_name) {
  // The name becomes part of a path and of a command line, without quotes.
  std::string name = job_name;
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '_' && c != '-'; }, '_');
  return name;
}

/// Finds an id such as "application_1700000000000_0001" in the output of the distributed shell's client.
std::optional<std::string> ApplicationIn(std::string_view text) {
  constexpr std::string_view kBegin = "application_";
  for (std::size_t at = text.find(kBegin); at != std::string_view::npos; at = text.find(kBegin, at + 1)) {
    const std::size_t end = std::min(text.find_first_not_of("0123456789_", at + kBegin.size()), text.size());
    const std::string_view id = text.substr(at, end - at);
    if (std::count(id.begin(), id.end(), '_') == 2 && id.back() != '_' && end < text.size())
      return std::string(id);
  }
  return std::nullopt;
}

}  // namespace

std::string FindDistributedShell(const Options& options) {
  const char* home = std::getenv("HADOOP_HOME");
  std::string directory = options.yarn_app_dir;
  if (directory.empty()) {
    if (home == nullptr) {
      throw std::runtime_error(
          "--cluster yarn: HADOOP_HOME is not set; set it to Hadoop's directory, or give the directory of the distributed shell's jar with --yarn-app-dir");
    }
    directory = std::string(home) + "/share/hadoop/yarn";
  }
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(kJarName) && name.ends_with(".jar") && name.find("-sources") == std::string::npos &&
        name.find("-tests") == std::string::npos) {
      return entry.path();
    }
  }
  throw std::runtime_error(fmt::format("--cluster yarn: there is no {}*.jar in {}", kJarName, directory));
}

Launch YarnLaunch(const GangPlan& plan, const std::string& jar) {
  const Options& options = *plan.options;
  const std::uint64_t mebibytes = (plan.memory_bytes().value_or(std::uint64_t{1} << 30) + 0xfffff) >> 20;
  Launch launch;
  launch.name = "yarn";
  launch.words = {"yarn",
                  "jar",
                  jar,
                  "org.apache.hadoop.yarn.applications.distributedshell.Client",
                  "-jar",
                  jar,
                  "-appname",
                  ApplicationName(plan.job_name),
                  "-num_containers",
                  std::to_string(plan.count),
                  "-container_memory",
                  std::to_string(mebibytes),
                  "-container_vcores",
                  std::to_string(plan.cores()),
                  "-master_memory",
                  "512",
                  "-timeout",
                  std::string(kLongest),
                  "-shell_script",
                  "FILE:worker.sh"};
  if (!options.queue.empty()) launch.words.insert(launch.words.end(), {"-queue", options.queue});
  if (plan.of_workers() && options.worker_gpus > 0) {
    launch.words.insert(launch.words.end(),
                        {"-container_resources", fmt::format("memory-mb={},vcores={},yarn.io/gpu={}",
                                                             mebibytes, plan.cores(), options.worker_gpus)});
  }
  const Shipment shipment = PlanShipment(options);
  std::vector<std::string> shipped = shipment.files;
  for (const Archive& archive : shipment.archives) shipped.push_back(archive.path);
  if (!shipped.empty()) {
    for (const std::string& path : shipped) {
      if (path.find_first_of(", 	") != std::string::npos) {
        throw std::runtime_error(fmt::format(
            "YARN's distributed shell does not accept a file with a comma or a space in its path: '{}'",
            path));
      }
    }
    launch.words.insert(launch.words.end(), {"-localize_files", fmt::format("{}", fmt::join(shipped, ","))});
  }
  launch.words.insert(launch.words.end(), options.yarn_args.begin(), options.yarn_args.end());
  if (!options.yarn_app_classpath.empty())
    launch.environment.emplace_back("HADOOP_CLASSPATH", options.yarn_app_classpath);
  // The distributed shell numbers its containers from 1. Its options for arguments and environment are not
  // used, because two shells, one after the other, would interpret the values; everything is in the script.
  launch.files.emplace_back(
      "worker.sh",
      "#!/bin/bash\nscript_variables=\n" +
          plan.script({.rank = "$((YARN_SHELL_ID - 1))", .directory = ".", .archives = shipment.archives}));
  launch.queue = Queue{.name = "YARN",
                       .returns = false,
                       .id = ApplicationIn,
                       .cancel =
                           [](const std::string& id) {
                             return std::vector<std::string>{"yarn", "application", "-kill", id};
                           },
                       .ask = {},
                       .report = {}};
  return launch;
}

ClusterEntry YarnEntry() {
  ClusterEntry entry;
  entry.name = "yarn";
  entry.may_lose_workers = true;
  entry.where = "Hadoop YARN containers";
  LaunchTogether(entry, [](const Options& options) -> MakeLaunch {
    return [jar = FindDistributedShell(options)](const GangPlan& plan) { return YarnLaunch(plan, jar); };
  });
  entry.host = [](const Options&) { return HostByRoute({tracker::ResolveHostIp("auto"), ""}); };
  entry.experimental = true;
  entry.has_own_directories = true;
  entry.bound_by =
      "the settings of the NodeManagers: control groups, or yarn.nodemanager.numa-awareness.enabled";
  entry.shared_options = {"--worker-memory", "--server-cores", "--server-memory",
                          "--worker-gpus",   "--queue",        "--auto-file-cache"};
  entry.own_options = {
      {"--yarn-app-classpath", "PATH", "",
       "Class path of the application master, instead of the default one.",
       Text<&Options::yarn_app_classpath>},
      {"--yarn-app-dir", "DIR", "", "Directory of the application master.", Text<&Options::yarn_app_dir>},
      {"--yarn-args", "WORDS", "",
       "More options for Hadoop's distributed shell, such as '-node_label_expression fast'.",
       Words<&Options::yarn_args>, true},
  };
  return entry;
}

}  // namespace warren::submit
