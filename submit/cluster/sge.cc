#include "submit/cluster/sge.h"

#include <fmt/format.h>

#include <sstream>

#include "submit/cluster/gang.h"
#include "submit/cluster/script.h"
#include "submit/options/values.h"
#include "submit/process/capture.h"
#include "submit/process/command.h"
#include "submit/process/environment.h"
#include "tracker/host_address.h"

namespace warren::submit {
namespace {

/// The address at which the processes reach this machine: its address on the route to an execution host or,
/// if no such host is known, on the default route.
tracker::Reached RouteToSgeHosts() {
  std::vector<std::string> hosts;
  std::istringstream lines(Capture({"qconf", "-sel"}, SearchPath()).out);
  for (std::string line; std::getline(lines, line) && hosts.size() < 8;) hosts.push_back(line);
  return tracker::AddressTowards(hosts);
}

}  // namespace

Launch SgeLaunch(const GangPlan& plan) {
  const Options& options = *plan.options;
  // Grid Engine starts a login shell, which sets its own PATH, so dmlc-submit's PATH is passed explicitly.
  tracker::Environment passed = PassedOn();
  passed.emplace_back("PATH", SearchPath());

  Launch launch;
  launch.name = "qsub";
  launch.words = {"qsub",      "-terse",      "-cwd", "-S",
                  "/bin/bash", "-C",
                  "",  // no directive prefix: arguments in the script may look like directives
                  "-N",        plan.job_name, "-t",   fmt::format("1-{}", plan.count)};
  const std::string logs = options.sge_log_dir.empty() ? "/dev/null" : options.sge_log_dir;
  launch.words.insert(launch.words.end(), {"-o", logs, "-e", logs});
  if (!options.queue.empty()) launch.words.insert(launch.words.end(), {"-q", options.queue});
  if (plan.cores() > 1) {
    launch.words.insert(launch.words.end(), {"-pe", "smp", std::to_string(plan.cores())});
  }
  // h_vmem is per slot, and the process has a slot for each core.
  if (const auto memory = plan.mebibytes_per_core()) {
    launch.words.insert(launch.words.end(), {"-l", fmt::format("h_vmem={}M", *memory)});
  }
  if (!options.time_limit.empty()) {
    launch.words.insert(launch.words.end(), {"-l", fmt::format("h_rt={}", options.time_limit)});
  }
  launch.words.insert(launch.words.end(), options.sge_args.begin(), options.sge_args.end());
  // The script contains the command's arguments, since qsub truncates arguments on its command line at
  // newlines and after some 10,000 bytes. The script does not contain the token, since all users of a host
  // can read the spool directory in which Grid Engine keeps scripts.
  ScriptSetting setting{.rank = "$((SGE_TASK_ID - 1))",
                        .environment = std::move(passed),
                        .cores = {.workers = "1", .cores = "${NSLOTS:-}"}};
  if (!plan.secrets.empty()) {
    launch.files.emplace_back("environment", plan.secrets);
    launch.directory = plan.shared_directory;
    setting.secrets_file = fmt::format("{}/environment", launch.directory);
  }
  launch.input = "#!/bin/bash\nscript_variables=\n" + plan.script(setting);
  launch.queue =
      Queue{.name = "Grid Engine",
            .id = [](std::string_view printed) -> std::optional<std::string> {
              // The output is a line such as "12.1-4:1", possibly after lines that the site adds.
              std::istringstream lines{std::string(printed)};
              std::optional<std::string> id;
              for (std::string line; std::getline(lines, line);) {
                const std::size_t digits = line.find_first_not_of("0123456789");
                if (digits != 0 && !line.empty() && (digits == std::string::npos || line[digits] == '.')) {
                  id = line.substr(0, digits);
                }
              }
              return id;
            },
            .cancel =
                [](const std::string& id) {
                  return std::vector<std::string>{"qdel", id};
                },
            .ask = [](const std::string&) { return std::vector<std::string>{"qstat"}; },
            .report = ReadQstat};
  return launch;
}

std::optional<JobReport> ReadQstat(const std::string& id, std::string_view printed, int exit_code) {
  if (exit_code != 0) return std::nullopt;  // the queue master may be down
  // The columns are: job-ID prior name user state date time queue slots task
  std::istringstream lines{std::string(printed)};
  std::string pending;
  std::string running;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string job, priority, name, user, state;
    if (!(words >> job >> priority >> name >> user >> state) || job != id) continue;
    if (state.find('E') != std::string::npos) {
      return JobReport{JobState::kOver,
                       fmt::format("in the error state {} (qstat -j {} shows why)", state, id), true};
    }
    (state.find_first_of("rt") != std::string::npos && state.find('q') == std::string::npos ? running
                                                                                            : pending) =
        state;
  }
  if (!running.empty()) return JobReport{JobState::kRunning, running};
  if (!pending.empty()) return JobReport{JobState::kPending, pending};
  return JobReport{JobState::kOver, "it is no longer in any queue"};
}

ClusterEntry SgeEntry() {
  ClusterEntry entry;
  entry.name = "sge";
  entry.may_lose_workers = true;
  entry.where = "a Grid Engine queue";
  LaunchTogether(entry, [](const Options&) -> MakeLaunch { return SgeLaunch; });
  entry.host = [](const Options&) { return HostByRoute(RouteToSgeHosts()); };
  entry.bound_by = "--sge-args '-binding linear:N', with which Grid Engine binds them";
  entry.core_sharing = CoreSharing::kTheirHost;
  entry.shared_options = {"--worker-memory", "--server-cores", "--server-memory", "--time-limit", "--queue"};
  entry.own_options = {
      {"--sge-log-dir", "DIR", "",
       "Directory for the output of Grid Engine's own scripts. By default it is discarded; dmlc-submit shows the output of the processes either way.",
       Text<&Options::sge_log_dir>},
      {"--sge-args", "WORDS", "", "More options for qsub, such as '-P project -l gpu=1'.",
       Words<&Options::sge_args>, true},
  };
  return entry;
}

}  // namespace warren::submit
