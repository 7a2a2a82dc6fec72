#include "submit/cluster/gang.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <utility>

#include "submit/cluster/action_loop.h"
#include "submit/cluster/agent_server.h"
#include "submit/cluster/core_choice.h"
#include "submit/cluster/gang_controller.h"
#include "submit/cluster/script.h"
#include "submit/cluster/stack_requests.h"
#include "submit/cluster/temporary_files.h"
#include "submit/options/job_name.h"
#include "submit/process/command.h"
#include "submit/process/environment.h"
#include "wire/job_token.h"

namespace warren::submit {
namespace {

namespace asio = boost::asio;
using std::chrono::steady_clock;

/// The port of the job's tracker or scheduler, from the process's environment; 0 if it has none.
std::uint16_t PortOf(const PlannedProcess& process) {
  const auto port = FindVariable(process.environment, PortVariable(process));
  return port ? static_cast<std::uint16_t>(std::stoi(*port)) : std::uint16_t{0};
}

GangPlan PlanGang(const Options& options, const PlannedProcess& example, std::size_t first, std::size_t count,
                  const GangScriptContext& context) {
  GangPlan plan;
  plan.options = &options;
  plan.role = example.role;
  plan.count = count;
  plan.job_name = QueuedJobName(options);
  PlannedProcess process = example;
  process.environment = WithoutTask(std::move(process.environment));
  const bool shares =
      example.role == tracker::Role::kWorker && ThreadsOf(options, InheritedNames()) == Threads::kShare;
  tracker::Environment secrets;
  for (const auto& entry : process.environment) {
    if (entry.first == wire::kTokenVariable) secrets.push_back(entry);
  }
  plan.secrets = ExportCommands(secrets) + fmt::format("agent_key={}\n", context.agent_key);
  plan.shared_directory = fmt::format("{}/.dmlc-submit-{}-{}", context.directory, context.job_mark, first);
  plan.script = [process, first, count, context, shares](ScriptSetting setting) {
    PlannedProcess one = process;
    one.environment = WithDefaults(setting.environment, process.environment);
    if (!setting.secrets_file.empty()) {
      std::erase_if(one.environment, [](const auto& entry) { return entry.first == wire::kTokenVariable; });
    }
    if (!shares) setting.cores = {};
    return GangScript(one, first, count, context, setting);
  };
  return plan;
}

class GangCluster : public Cluster {
 public:
  /// Throws std::runtime_error if no port is free for the agents or the context's host does not resolve.
  GangCluster(ClusterContext context, MakeLaunch make_launch);

  Started Start(std::size_t index, const PlannedProcess& process, int attempt) override;
  void Stop() override;
  void Kill() override;
  void Dump(std::size_t index, std::function<void(std::string text)> done) override;
  bool busy() const override { return controller_.busy(); }
  void PauseOutput() override { agents_.PauseOutput(); }
  void ResumeOutput() override { agents_.ResumeOutput(); }

 private:
  /// The part of a gang's state that GangCluster keeps. The controller refers to the gang only by its GangId.
  struct Gang {
    PlannedProcess example;  ///< the first process of the gang
    Launch launch;
    std::unique_ptr<TemporaryFiles> files;
    pid_t launcher = -1;
    std::optional<KeptJob> kept = {};
  };

  void Do(const StartLauncher& start);
  void Do(const StopLauncher& stop);
  void Do(const KillLauncher& kill);
  void Do(const RemoveFiles& remove);
  void Do(const SetKept& kept);
  void Do(const RunCommand& run);
  void Do(const LaunchProcess& launch);
  void Do(const EndAgent& end);
  void Do(const ClusterEvent& event);
  void LaunchGang(GangId id);
  void TellWhenIdle();

  asio::io_context& io_;
  Children& children_;
  const Options& options_;
  ClusterEvents events_;
  MakeLaunch make_launch_;
  std::string host_;
  std::string job_mark_;
  std::string agent_key_;
  StackRequests stack_requests_;
  AgentServer agents_;
  GangController controller_;
  std::vector<Gang> gangs_;
  ActionLoop<GangController, GangAction> loop_;
};

GangCluster::GangCluster(ClusterContext context, MakeLaunch make_launch)
    : io_(context.io),
      children_(context.children),
      options_(context.options),
      events_(std::move(context.events)),
      make_launch_(std::move(make_launch)),
      host_(std::move(context.host)),
      job_mark_(NewJobMark()),
      agent_key_(wire::JobToken::Random().ToHex()),
      stack_requests_(io_),
      agents_(io_, job_mark_, agent_key_,
              static_cast<std::size_t>(options_.num_servers + options_.num_workers), host_,
              PortsOfAgents(options_).first, PortsOfAgents(options_).second,
              [this](const AgentEvent& event) {
                const auto* const said = std::get_if<AgentSaid>(&event);
                if (said != nullptr && stack_requests_.Take(said->message)) return;
                controller_.Handle(event, steady_clock::now());
                loop_.Run();
              }),
      controller_(static_cast<std::size_t>(options_.num_servers),
                  static_cast<std::size_t>(options_.num_workers),
                  fmt::format("{} port {}", host_, agents_.port())),
      gangs_(controller_.num_gangs()),
      loop_(io_, controller_, [this](const auto& action) { Do(action); }) {}

Started GangCluster::Start(std::size_t index, const PlannedProcess& process, int attempt) {
  const GangId gang = controller_.GangOf(index);
  if (index == controller_.FirstOf(gang)) gangs_[gang].example = process;
  controller_.Start(index, attempt, PortOf(process), steady_clock::now());
  loop_.RunSoon();
  return {};
}

void GangCluster::Stop() {
  controller_.Stop(steady_clock::now());
  loop_.RunSoon();
}

void GangCluster::Kill() {
  controller_.Kill();
  loop_.RunSoon();
}

void GangCluster::Dump(std::size_t index, std::function<void(std::string text)> done) {
  if (!stack_requests_.Ask(index, std::move(done))) return;
  if (!agents_.AskForStacks(index)) stack_requests_.End(index, "it is not running, or has no agent");
}

// --- actions ---------------------------------------------------------------------------------------------

void GangCluster::Do(const StartLauncher& start) {
  try {
    LaunchGang(start.gang);
  } catch (const std::runtime_error& error) {
    controller_.LauncherFailed(error.what());
  }
}

void GangCluster::LaunchGang(GangId id) {
  Gang& gang = gangs_[id];
  const GangScriptContext context{.job_mark = job_mark_,
                                  .directory = std::filesystem::current_path().string(),
                                  .rendezvous_host = host_,
                                  .rendezvous_port = agents_.port(),
                                  .agent_key = agent_key_};
  gang.launch = make_launch_(
      PlanGang(options_, gang.example, controller_.FirstOf(id), controller_.CountOf(id), context));
  gang.files =
      std::make_unique<TemporaryFiles>(gang.launch.files, gang.launch.directory, gang.launch.needs_directory);
  Do(SetKept{id, std::nullopt});
  const std::vector<std::string> words = gang.files->Named(gang.launch.words);
  SpawnRequest request{FindCommand(words.front(), SearchPath()).file, words,
                       InheritedWith(gang.launch.environment, gang.example.unset),
                       !gang.launch.input.empty()};
  spdlog::debug("{}", ShellCommand(words));
  gang.launcher = children_.Start(request, {[this, id](Stream stream, std::string_view bytes) {
                                              controller_.LauncherWrote(id, stream, bytes);
                                              loop_.Run();
                                            },
                                            [this, id](const ExitStatus& status) {
                                              gangs_[id].launcher = -1;
                                              controller_.LauncherExited(id, status, steady_clock::now());
                                              TellWhenIdle();
                                              loop_.Run();
                                            }});
  if (request.reads_input) {
    children_.Write(gang.launcher, gang.launch.input);
    children_.CloseInput(gang.launcher);
  }
  controller_.Launched(id, gang.launch);
}

void GangCluster::Do(const StopLauncher& stop) {
  children_.Stop({gangs_[stop.gang].launcher}, kLauncherGrace);
}

void GangCluster::Do(const KillLauncher& kill) {
  children_.Kill({gangs_[kill.gang].launcher});
}

void GangCluster::Do(const RemoveFiles& remove) {
  gangs_[remove.gang].files.reset();
}

/// Sets the cleanup command, which cancels the job and removes the launcher's files, and reports the kept
/// jobs if they have changed.
void GangCluster::Do(const SetKept& kept) {
  const auto& files = gangs_[kept.gang].files;
  std::string commands;
  if (files && !files->directory().empty()) commands = ShellCommand({"rm", "-r", files->directory()});
  if (kept.job) commands += (commands.empty() ? "" : "; ") + ShellCommand(kept.job->cancel);
  children_.SetCleanupCommand(fmt::format("gang {}", controller_.FirstOf(kept.gang)), commands);
  std::optional<KeptJob>& known = gangs_[kept.gang].kept;
  if (known.has_value() == kept.job.has_value() && (!known || known->name == kept.job->name)) return;
  known = kept.job;
  std::vector<KeptJob> jobs;
  for (const Gang& gang : gangs_) {
    if (gang.kept) jobs.push_back(*gang.kept);
  }
  events_.keeps(jobs);
}

void GangCluster::Do(const RunCommand& run) {
  const auto printed = std::make_shared<std::string>();
  const auto complained = std::make_shared<std::string>();
  const auto ended = [this, id = run.command](const std::string& said, const ExitStatus& status) {
    controller_.CommandEnded(id, said, status, steady_clock::now());
    TellWhenIdle();
    loop_.Run();
  };
  try {
    children_.Start({FindCommand(run.words.front(), SearchPath()).file, run.words, InheritedWith({}, {})},
                    {[printed, complained](Stream stream, std::string_view bytes) {
                       *(stream == Stream::kOut ? printed : complained) += bytes;
                     },
                     [printed, complained, ended](const ExitStatus& status) {
                       ended(status.ok() ? *printed : *printed + *complained, status);
                     }});
  } catch (const std::runtime_error& error) {
    asio::post(io_, [ended, said = std::string(error.what())] { ended(said, {kNotFound, 0, false, {}}); });
  }
}

void GangCluster::Do(const LaunchProcess& launch) {
  agents_.Launch(launch.index, launch.attempt, launch.port, launch.master);
}

void GangCluster::Do(const EndAgent& end) {
  agents_.End(end.index);
}

void GangCluster::Do(const ClusterEvent& event) {
  if (const auto* const exited = std::get_if<ProcessExited>(&event))
    stack_requests_.End(exited->index, "it has ended");
  Deliver(event, events_);
}

void GangCluster::TellWhenIdle() {
  asio::post(io_, [this] {
    if (!busy()) events_.idle();
  });
}

/// Makes the output of --dry-run.
std::string ShowGangs(const Options& options, const std::vector<PlannedProcess>& plan,
                      const std::string& host, const MakeLaunch& make_launch) {
  const GangScriptContext context{.job_mark = "JOB",
                                  .directory = std::filesystem::current_path().string(),
                                  .rendezvous_host = host,
                                  .rendezvous_port = PortsOfAgents(options).first,
                                  .agent_key = kShownSecret};
  std::string text;
  for (std::size_t i = 0; i < plan.size();) {
    if (plan[i].role == tracker::Role::kScheduler) {
      text += ShowPlan({plan[i++]});
      continue;
    }
    std::size_t end = i;
    while (end < plan.size() && plan[end].role == plan[i].role) ++end;
    const Launch launch = make_launch(PlanGang(options, plan[i], i, end - i, context));
    text += fmt::format("# {} to {}\n", ProcessName(plan[i].role, 0), end - i - 1);
    for (const auto& [name, content] : launch.files) text += fmt::format("# {}:\n{}", name, content);
    std::vector<std::string> words;
    if (!launch.environment.empty()) words.emplace_back("env");
    for (const auto& [name, value] : launch.environment) words.push_back(fmt::format("{}={}", name, value));
    words.insert(words.end(), launch.words.begin(), launch.words.end());
    text += launch.input.empty() ? ShellCommand(words) + '\n' : WithInput(ShellCommand(words), launch.input);
    i = end;
  }
  return text;
}

}  // namespace

std::pair<std::uint16_t, std::uint16_t> PortsOfAgents(const Options& options) {
  const bool has_other_listener = !options.no_tracker || options.num_servers > 0;
  if (options.port == 0 || !has_other_listener) return {options.port, options.port_end};
  const auto next = static_cast<std::uint16_t>(std::min(options.port + 1, 65535));
  const std::uint16_t last =
      options.port_end_was_chosen ? options.port_end : std::max(options.port_end, next);
  return {std::min(next, last), last};
}

void LaunchTogether(ClusterEntry& entry, std::function<MakeLaunch(const Options&)> launches) {
  entry.make = [launches](ClusterContext context) -> std::unique_ptr<Cluster> {
    MakeLaunch make_launch = launches(context.options);
    return std::make_unique<GangCluster>(std::move(context), std::move(make_launch));
  };
  entry.show = [launches = std::move(launches)](
                   const Options& options, const std::vector<PlannedProcess>& plan, const std::string& host) {
    return ShowGangs(options, plan, host, launches(options));
  };
}

}  // namespace warren::submit
