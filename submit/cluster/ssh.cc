#include "submit/cluster/ssh.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <utility>

#include "submit/cluster/agent_messages.h"
#include "submit/cluster/core_choice.h"
#include "submit/cluster/script.h"
#include "submit/options/values.h"
#include "submit/output/last_line.h"
#include "submit/process/capture.h"
#include "submit/process/command.h"
#include "submit/process/environment.h"
#include "submit/process/watchdog.h"
#include "tracker/host_address.h"

namespace warren::submit {
namespace {

/// The exit code of ssh if a connection is lost or cannot be made.
constexpr int kSshFailed = 255;
/// Extra time after kStopGrace for the remote script to end its process and for its last output to arrive.
constexpr std::chrono::milliseconds kLastWordsPatience{500};
/// Bytes kept of the last output of ssh or rsync.
constexpr std::size_t kSshWordsBytes = 2000;

/// ssh and its options, without the host. If an option is given twice, ssh takes the first.
std::vector<std::string> SshWords(const Options& options, const Host& host) {
  std::vector<std::string> words = {"ssh"};
  words.insert(words.end(), options.ssh_options.begin(), options.ssh_options.end());
  if (options.ssh_host_keys == HostKeys::kAcceptNew) {
    words.insert(words.end(), {"-o", "StrictHostKeyChecking=accept-new"});
  } else if (options.ssh_host_keys == HostKeys::kIgnore) {
    words.insert(words.end(), {"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"});
  }
  words.insert(words.end(),
               {"-T", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR", "-o", "ConnectTimeout=10", "-o",
                "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3",
                // An existing shared connection is used. A new one is not shared, as it would have to outlive
                // its process.
                "-o", "RemoteCommand=none", "-o", "ControlMaster=no", "-o", "ClearAllForwardings=yes"});
  if (host.port != 0) words.insert(words.end(), {"-p", std::to_string(host.port)});
  return words;
}

std::vector<std::string> ShellOn(const Options& options, const Host& host) {
  std::vector<std::string> words = SshWords(options, host);
  words.insert(words.end(), {"--", host.Login(), "exec sh"});
  return words;
}

std::string WorkingDirectory(const Options& options) {
  return options.sync_dst_dir.empty() ? std::filesystem::current_path().string() : options.sync_dst_dir;
}

/// The command that copies the content of this directory. rsync splits the value of -e at blanks only.
std::vector<std::string> CopyTo(const Options& options, const Host& host) {
  const std::string target =
      host.name.find(':') == std::string::npos ? host.name : fmt::format("[{}]", host.name);  // IPv6
  const std::string login = host.user.empty() ? target : fmt::format("{}@{}", host.user, target);
  const std::string make_directory = fmt::format("mkdir -p -- {} && rsync", ShellQuote(options.sync_dst_dir));
  return {"rsync",
          "-az",
          "--protect-args",
          "--rsync-path",
          make_directory,
          "-e",
          ShellCommand(SshWords(options, host)),
          "--",
          "./",
          fmt::format("{}:{}/", login, options.sync_dst_dir)};
}

PlannedProcess ForHost(PlannedProcess process, const Host& host) {
  tracker::Environment environment = PassedOn();
  std::erase_if(environment, [&](const auto& passed) {
    return std::any_of(process.environment.begin(), process.environment.end(),
                       [&](const auto& entry) { return entry.first == passed.first; });
  });
  environment.insert(environment.end(), process.environment.begin(), process.environment.end());
  environment.emplace_back("DMLC_NODE_HOST", host.name);
  process.environment = std::move(environment);
  return process;
}

/// The place of a process of the plan: servers come first, and the scheduler has none.
std::size_t PlaceOf(const Options& options, std::size_t index) {
  return options.num_servers > 0 ? index - 1 : index;
}

/// The places of the servers, or of the workers, on a host.
std::vector<std::size_t> PlacesOnHost(const Options& options, const std::vector<std::size_t>& places,
                                      std::size_t host, bool servers) {
  const auto first_worker = static_cast<std::size_t>(options.num_servers);
  std::vector<std::size_t> found;
  for (std::size_t place = servers ? 0 : first_worker; place < (servers ? first_worker : places.size());
       ++place) {
    if (places[place] == host) found.push_back(place);
  }
  return found;
}

/// How the cores of a host are shared: among the workers placed there, and this one if it moved there because
/// its own host is gone.
CoreShare ShareOf(const Options& options, const PlannedProcess& process,
                  const std::vector<std::size_t>& places, std::size_t place, std::size_t host) {
  if (process.role != tracker::Role::kWorker || ThreadsOf(options, InheritedNames()) != Threads::kShare)
    return {};
  const std::size_t workers = PlacesOnHost(options, places, host, false).size();
  const auto servers = static_cast<int>(PlacesOnHost(options, places, host, true).size());
  const bool moved = places[place] != host;
  return {.workers = std::to_string(workers + (moved ? 1 : 0)), .kept = CoresOfServers(options, servers)};
}

/// Adds what torch.distributed and Horovod need beyond the planned environment. `master`: worker 0's host.
void AddPlace(const Options& options, const std::vector<std::size_t>& places, std::size_t place,
              std::size_t host, const std::string& master, PlannedProcess& process) {
  if (process.role != tracker::Role::kWorker) return;
  const std::vector<std::size_t> workers = PlacesOnHost(options, places, host, false);
  const auto own = std::find(workers.begin(), workers.end(), place);  // end() if its own host is gone
  const auto local_rank = static_cast<std::size_t>(own - workers.begin());
  AddPlaceVariable(kLocalRankVariable, std::to_string(local_rank), process.environment);
  AddPlaceVariable(kLocalSizeVariable, std::to_string(workers.size() + (own == workers.end() ? 1 : 0)),
                   process.environment);
  std::size_t cross_rank = 0;
  std::size_t cross_size = 0;
  const std::size_t hosts = *std::max_element(places.begin(), places.end()) + 1;
  for (std::size_t other = 0; other < hosts; ++other) {
    if (other != host && PlacesOnHost(options, places, other, false).size() <= local_rank) continue;
    if (other < host) ++cross_rank;
    ++cross_size;
  }
  process.environment.emplace_back(kCrossRankVariable, std::to_string(cross_rank));
  process.environment.emplace_back(kCrossSizeVariable, std::to_string(cross_size));
  if (!NamesMaster(process)) process.environment.emplace_back(kMasterVariable, master);
}

/// The binding of a host's processes. `said` is the host's "cores" message: the number of usable cores, its
/// OMP_NUM_THREADS (0 if not set), and its core lists.
Binding BindingOn(const Options& options, const std::string& said, std::size_t workers, std::size_t servers) {
  std::istringstream words(said);
  int usable = 1;
  std::string threads;
  std::string lists;
  std::getline(words >> usable >> threads >> std::ws, lists);
  const std::optional<HostCores> cores = ParseHostCores(lists);
  if (!cores) return {.workers = {}, .servers = {}, .why_not = "it did not report its cores"};
  // Values that are passed on, including --worker-cores, take precedence over the host's own.
  const char* passed = std::getenv("OMP_NUM_THREADS");
  if (passed != nullptr || options.worker_cores_were_chosen) threads = passed != nullptr ? passed : "";
  return BindProcesses(
      BindOf(options), *cores,
      ProcessesToBind(options, static_cast<int>(workers), static_cast<int>(servers), usable, threads));
}

/// Appends `bytes`, then drops all but the last kSshWordsBytes.
void Remember(std::string& words, std::string_view bytes) {
  words += bytes;
  if (words.size() > kSshWordsBytes) words.erase(0, words.size() - kSshWordsBytes);
}

std::string HintFor(std::string_view words) {
  if (words.find("Host key verification failed") != std::string_view::npos) {
    return "; its key is unknown: connect once by hand, or see --ssh-host-keys";
  }
  if (words.find("Permission denied") != std::string_view::npos) {
    return "; a password cannot be entered here: make sure that `ssh -o BatchMode=yes` can log in (ssh-copy-id, ssh-agent)";
  }
  return {};
}

/// The host name that ssh connects to, by its configuration.
std::string RealName(const Options& options, const Host& host) {
  std::vector<std::string> words = SshWords(options, host);
  words.insert(words.end(), {"-G", "--", host.Login()});
  std::istringstream lines(Capture(words, SearchPath()).out);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("hostname ")) return line.substr(9);
  }
  return host.name;
}

/// The address at which the other workers find worker 0. If its name means a different machine on each host,
/// as localhost does, the address is that of dmlc-submit's host, where worker 0 then runs.
std::string MasterOf(const Options& options, const std::vector<Host>& hosts,
                     const std::vector<std::size_t>& places) {
  const auto is_loopback = [](const std::string& name) {
    return name == "localhost" || name == "::1" || name.starts_with("127.");
  };
  const std::string name = RealName(options, hosts[places[static_cast<std::size_t>(options.num_servers)]]);
  const bool all_here =
      std::all_of(hosts.begin(), hosts.end(), [&](const Host& host) { return is_loopback(host.name); });
  return is_loopback(name) && !all_here ? RouteToSshHosts(options).address : name;
}

void StoreHostKeys(Options& options, const std::string& value) {
  constexpr std::array<std::pair<std::string_view, HostKeys>, 3> kChoices = {
      {{"strict", HostKeys::kStrict}, {"accept-new", HostKeys::kAcceptNew}, {"ignore", HostKeys::kIgnore}}};
  options.ssh_host_keys = Choose(value, kChoices);
}

}  // namespace

struct SshCluster::Place {
  Host host;
  int connecting = 0;
  int running = 0;
  bool gone = false;  ///< it could not be reached, or a connection to it was lost
  bool told = false;  ///< the user has been told that no process is bound there
  std::deque<std::shared_ptr<Session>> waiting;
};

/// A remote process and the ssh that leads to it.
struct SshCluster::Session {
  Session(std::size_t number, std::size_t place, std::string text, const std::string& job_mark)
      : index(number), host(place), script(std::move(text)), messages(job_mark) {}

  std::size_t index;
  std::size_t host;
  std::string script;
  AgentMessageReader messages;
  pid_t ssh = -1;
  bool connecting = false;
  bool began = false;                ///< whether the remote process has started
  std::optional<ExitStatus> status;  ///< how the remote process ended
  std::string words;  ///< the end of its standard error, or of ssh's own if the process did not start
};

struct SshCluster::Copying {
  std::function<void()> ready;
  std::size_t next = 0;
  std::size_t under_way = 0;
  std::size_t done = 0;
  bool failed = false;
};

SshCluster::SshCluster(boost::asio::io_context& io, Children& children, const Options& options,
                       ClusterEvents events)
    : io_(io),
      children_(children),
      options_(options),
      events_(std::move(events)),
      job_mark_(NewJobMark()),
      stack_requests_(io),
      beat_(io),
      patience_(io) {
  std::vector<Host> hosts = ReadHosts(options.host_file);
  places_ = PlacesOn(
      hosts, static_cast<std::size_t>(options.num_workers) + static_cast<std::size_t>(options.num_servers));
  master_ = MasterOf(options, hosts, places_);
  for (Host& host : hosts) {
    hosts_.emplace_back();
    hosts_.back().host = std::move(host);
  }
  Beat();
}

SshCluster::~SshCluster() = default;

void SshCluster::Prepare(const std::function<void()>& ready) {
  stopping_ = false;
  if (options_.sync_dst_dir.empty()) return ready();
  const auto copying = std::make_shared<Copying>();
  copying->ready = ready;
  while (copying->under_way < kCopyingAtOnce && copying->next < hosts_.size() && !copying->failed) {
    CopyNext(copying);
  }
}

void SshCluster::CopyNext(const std::shared_ptr<Copying>& copying) {
  const Host& host = hosts_[copying->next++].host;
  ++copying->under_way;
  const std::vector<std::string> words = CopyTo(options_, host);
  const auto said = std::make_shared<std::string>();
  const auto pid = std::make_shared<pid_t>(-1);
  const auto finished = [this, copying, said, pid, name = host.name](const ExitStatus& status) {
    copies_.erase(*pid);
    --copying->under_way;
    if (stopping_ || copying->failed) return;
    if (!status.ok()) {
      copying->failed = true;
      const std::string words_said = LastLine(*said);
      return events_.trouble(fmt::format(
          "the current directory could not be copied to {} on {}: rsync {}{}{}", options_.sync_dst_dir, name,
          status.Describe(), words_said.empty() ? "" : ": " + words_said, HintFor(*said)));
    }
    ++copying->done;
    spdlog::info("copied the current directory to {} on {} ({} of {} hosts)", options_.sync_dst_dir, name,
                 copying->done, hosts_.size());
    if (copying->next < hosts_.size()) return CopyNext(copying);
    if (copying->under_way == 0) copying->ready();
  };
  try {
    *pid = children_.Start({FindCommand("rsync", SearchPath()).file, words, InheritedWith({}, {})},
                           {[said](Stream, std::string_view bytes) { Remember(*said, bytes); }, finished});
    copies_.insert(*pid);
  } catch (const std::runtime_error& error) {
    copying->failed = true;
    const std::string story = fmt::format("--sync-dst-dir: {}", error.what());
    boost::asio::post(io_, [this, story] { events_.trouble(story); });
  }
}

/// The host of the process's slot or, once that is gone, the host with the lowest load.
std::size_t SshCluster::ChooseHost(std::size_t index) {
  const std::size_t own = places_[PlaceOf(options_, index)];
  if (!hosts_[own].gone) return own;
  std::size_t best = own;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i].gone) continue;
    const auto load = [&](std::size_t host) {
      return static_cast<double>(hosts_[host].running) / hosts_[host].host.slots;
    };
    if (best == own || load(i) < load(best)) best = i;
  }
  return best;
}

Started SshCluster::Start(std::size_t index, const PlannedProcess& process, int attempt) {
  const std::size_t chosen = ChooseHost(index);
  Place& place = hosts_[chosen];
  PlannedProcess placed = ForHost(process, place.host);
  AddPlace(options_, places_, PlaceOf(options_, index), chosen, master_, placed);
  std::string script = WatchedScript(placed, index, attempt, job_mark_, WorkingDirectory(options_),
                                     ShareOf(options_, process, places_, PlaceOf(options_, index), chosen),
                                     BindOf(options_) != Bind::kNone);
  auto session = std::make_shared<Session>(index, chosen, std::move(script), job_mark_);
  sessions_[index] = session;
  ++place.running;
  place.waiting.push_back(std::move(session));
  ConnectNext(chosen);
  return {-1, place.host.name};
}

void SshCluster::ConnectNext(std::size_t host) {
  Place& place = hosts_[host];
  while (place.connecting < kConnectingAtOnce && !place.waiting.empty()) {
    const std::shared_ptr<Session> session = place.waiting.front();
    place.waiting.pop_front();
    Connect(session);
  }
}

void SshCluster::Connect(const std::shared_ptr<Session>& session) {
  Place& place = hosts_[session->host];
  const auto on_text = [this, session](Stream stream, std::string_view bytes) {
    events_.output(session->index, stream, bytes);
  };
  const auto on_output = [this, session, on_text](Stream stream, std::string_view bytes) {
    if (stream == Stream::kOut) return on_text(stream, bytes);
    session->messages.Append(
        bytes,
        [&](std::string_view text) {
          Remember(session->words, text);
          on_text(stream, text);
        },
        [&](const AgentMessage& message) { OnMessage(*session, message); });
  };
  try {
    session->ssh = children_.Start(
        {FindCommand("ssh", SearchPath()).file, ShellOn(options_, place.host), InheritedWith({}, {}), true},
        {on_output, [this, session, on_text](const ExitStatus& status) {
           session->messages.Finish([&](std::string_view text) { on_text(Stream::kErr, text); });
           OnExit(session, status);
         }});
  } catch (const std::runtime_error& error) {
    session->status = ExitStatus{kNotFound, 0, false, fmt::format("could not be started: {}", error.what())};
    boost::asio::post(io_, [this, session] { OnExit(session, {}); });
    return;
  }
  session->connecting = true;
  ++place.connecting;
  children_.Write(session->ssh, std::exchange(session->script, {}));
}

void SshCluster::Connected(Session& session) {
  if (!std::exchange(session.connecting, false)) return;
  --hosts_[session.host].connecting;
  ConnectNext(session.host);
}

void SshCluster::OnMessage(Session& session, const AgentMessage& message) {
  if (stack_requests_.Take(message)) return;
  std::istringstream words(message.text);
  int attempt = 0;
  if (message.kind == "cores" && !session.began) {
    AnswerWithCores(session, message.text);
  } else if (message.kind == "start") {
    Started where;
    words >> attempt >> where.pid >> where.host;
    session.began = true;
    session.words.clear();
    where.host = hosts_[session.host].host.name;  // as the user knows it
    events_.located(session.index, where);
    Connected(session);
  } else if (message.kind == "usage") {
    if (const auto sample = ParseUsage(message.text)) events_.sampled(session.index, *sample);
  } else if (message.kind == "exit") {
    int code = 0;
    words >> attempt >> code;
    session.status = FromShellCode(code);
  } else if (message.kind == "fail") {
    session.status = ExitStatus{1, 0, false, fmt::format("could not be started: {}", message.text)};
  }
}

/// Sends the script the line that it waits for: the cores to bind its process to. Each process of a host
/// always gets the same cores, however often it is started; one that moved here because its own host is gone
/// gets none.
void SshCluster::AnswerWithCores(Session& session, const std::string& said) {
  Place& host = hosts_[session.host];
  const std::vector<std::size_t> workers = PlacesOnHost(options_, places_, session.host, false);
  const std::vector<std::size_t> servers = PlacesOnHost(options_, places_, session.host, true);
  const Binding binding = BindingOn(options_, said, workers.size(), servers.size());
  if (!binding.why_not.empty() && !std::exchange(host.told, true)) {
    spdlog::log(binding.too_few ? spdlog::level::warn : spdlog::level::info, "{}",
                NotBoundStory(BindOf(options_), binding, host.host.name));
  }
  CoreList own;
  const std::size_t place = PlaceOf(options_, session.index);
  const auto take = [&](const std::vector<std::size_t>& places, const std::vector<CoreList>& cores) {
    const auto found = std::find(places.begin(), places.end(), place);
    if (found != places.end() && !cores.empty()) own = cores[found - places.begin()];
  };
  take(servers, binding.servers);
  take(workers, binding.workers);
  if (!own.empty()) {
    const bool serves = place < static_cast<std::size_t>(options_.num_servers);
    const int task_id = static_cast<int>(place) - (serves ? 0 : options_.num_servers);
    spdlog::debug("{} is bound to {} of {}",
                  ProcessName(serves ? tracker::Role::kServer : tracker::Role::kWorker, task_id),
                  NamedCores(own), host.host.name);
  }
  children_.Write(session.ssh, ShowCoreList(own) + "\n");
}

void SshCluster::OnExit(const std::shared_ptr<Session>& session, const ExitStatus& status) {
  Connected(*session);
  --hosts_[session->host].running;
  const auto found = sessions_.find(session->index);
  if (found != sessions_.end() && found->second == session) sessions_.erase(found);
  stack_requests_.End(session->index, "it has ended");
  events_.exited(session->index, session->status ? *session->status : Explain(*session, status));
}

/// The status of a worker whose ssh ended before the host reported how the worker ended.
ExitStatus SshCluster::Explain(const Session& session, const ExitStatus& status) {
  Place& place = hosts_[session.host];
  const std::string words = LastLine(session.words);
  const std::string what = words.empty() ? fmt::format("ssh {}", status.Describe()) : words;
  ExitStatus explained = status;
  if (explained.ok()) explained.code = kSshFailed;
  if (!stopping_) place.gone = true;
  if (session.began) {
    explained.story = fmt::format("was lost with the connection to {} ({})", place.host.name, what);
  } else {
    explained.story = fmt::format("could not be started on {}: {}{}", place.host.name, what, HintFor(what));
  }
  return explained;
}

/// The remote scripts end their processes when their input ends; the last output still arrives.
void SshCluster::Stop() {
  stopping_ = true;
  for (const pid_t pid : copies_) children_.Stop({pid});
  for (Place& place : hosts_) {
    for (const auto& session : std::exchange(place.waiting, {})) {
      session->status = ExitStatus{0, SIGTERM, false, {}};
      boost::asio::post(io_, [this, session] { OnExit(session, {}); });
    }
  }
  for (const auto& [index, session] : sessions_) {
    if (session->began) {
      children_.CloseInput(session->ssh);
    } else {
      children_.Stop({session->ssh});
    }
  }
  patience_.expires_after(kStopGrace + kLastWordsPatience);
  patience_.async_wait([this](const boost::system::error_code& error) {
    if (!error && stopping_) Kill();
  });
}

void SshCluster::Kill() {
  std::set<pid_t> pids = copies_;
  for (const auto& [index, session] : sessions_) pids.insert(session->ssh);
  children_.Kill(pids);
}

void SshCluster::Dump(std::size_t index, std::function<void(std::string text)> done) {
  if (!stack_requests_.Ask(index, std::move(done))) return;
  const auto found = sessions_.find(index);
  if (found == sessions_.end() || !found->second->began) {
    stack_requests_.End(index, "it is not running");
  } else {
    children_.Write(found->second->ssh, "stacks\n");
  }
}

void SshCluster::Beat() {
  beat_.expires_after(kBeatInterval);
  beat_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    for (const auto& [index, session] : sessions_) {
      if (session->began) children_.Write(session->ssh, "\n");
    }
    Beat();
  });
}

std::vector<std::string> SshHosts(const Options& options) {
  std::vector<std::string> names;
  for (const Host& host : ReadHosts(options.host_file)) names.push_back(RealName(options, host));
  return names;
}

tracker::Reached RouteToSshHosts(const Options& options) {
  std::vector<std::string> names;
  for (const Host& host : ReadHosts(options.host_file)) {
    names.push_back(RealName(options, host));
    tracker::Reached reached = tracker::AddressTowards({names.back()});
    if (!reached.by.empty()) return {std::move(reached.address), host.name};
  }
  return tracker::AddressTowards(names);
}

std::string ShowSsh(const Options& options, const std::vector<PlannedProcess>& plan) {
  const std::vector<Host> hosts = ReadHosts(options.host_file);
  std::string text;
  if (!options.sync_dst_dir.empty()) {
    text += "# first, for each host\n";
    for (const Host& host : hosts) text += ShellCommand(CopyTo(options, host)) + '\n';
  }
  const bool binds = BindOf(options) != Bind::kNone;
  if (binds) {
    text += fmt::format(
        "# --bind {}: each script reports its host's cores and reads one line with the cores to bind its process to, such as 0-3, or none\n",
        BindName(BindOf(options)));
  }
  const std::vector<std::size_t> places = PlacesOn(
      hosts, static_cast<std::size_t>(options.num_workers) + static_cast<std::size_t>(options.num_servers));
  const std::string master = MasterOf(options, hosts, places);
  for (std::size_t i = 0; i < plan.size(); ++i) {
    if (plan[i].role == tracker::Role::kScheduler) {
      text += ShowPlan({plan[i]});
      continue;
    }
    const std::size_t own = PlaceOf(options, i);
    const Host& host = hosts[places[own]];
    PlannedProcess placed = ForHost(plan[i], host);
    AddPlace(options, places, own, places[own], master, placed);
    text += fmt::format("# {}, standard input stays open\n{}", ProcessName(plan[i].role, plan[i].task_id),
                        WithInput(ShellCommand(ShellOn(options, host)),
                                  WatchedScript(placed, i, 0, "JOB", WorkingDirectory(options),
                                                ShareOf(options, plan[i], places, own, places[own]), binds)));
  }
  return text;
}

ClusterEntry SshEntry() {
  ClusterEntry entry;
  entry.name = "ssh";
  entry.where = "the hosts of a host file";
  entry.make = [](ClusterContext context) -> std::unique_ptr<Cluster> {
    return std::make_unique<SshCluster>(context.io, context.children, context.options,
                                        std::move(context.events));
  };
  entry.show = [](const Options& options, const std::vector<PlannedProcess>& plan, const std::string&) {
    return ShowSsh(options, plan);
  };
  entry.host = [](const Options& options) { return HostByRoute(RouteToSshHosts(options)); };
  entry.known_hosts = SshHosts;
  entry.core_sharing = CoreSharing::kTheirHost;
  entry.shared_options = {"--bind", "--host-file"};
  entry.own_options = {
      {"--sync-dst-dir", "DIR", "",
       "Copy the current directory to DIR on every host with rsync, and run the processes there.",
       Text<&Options::sync_dst_dir>},
      {"--ssh-host-keys", "strict|accept-new|ignore", "strict",
       "Treatment of hosts with unknown keys: strict refuses them unless your ssh configuration says otherwise, accept-new adds their keys, ignore does not check keys.",
       StoreHostKeys},
      {"--ssh-options", "WORDS", "",
       "More options for ssh, such as '-i key -J jump'; quote words that contain spaces.",
       Words<&Options::ssh_options>, true},
  };
  return entry;
}

}  // namespace warren::submit
