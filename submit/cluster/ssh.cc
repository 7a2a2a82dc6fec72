#include "submit/cluster/ssh.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "submit/cluster/action_loop.h"
#include "submit/cluster/core_choice.h"
#include "submit/cluster/host_file.h"
#include "submit/cluster/host_source.h"
#include "submit/cluster/script.h"
#include "submit/cluster/ssh_controller.h"
#include "submit/cluster/ssh_places.h"
#include "submit/cluster/stack_requests.h"
#include "submit/options/values.h"
#include "submit/output/last_line.h"
#include "submit/process/capture.h"
#include "submit/process/command.h"
#include "submit/process/environment.h"

namespace warren::submit {
namespace {

using std::chrono::steady_clock;

/// Number of bytes kept from the end of rsync's output.
constexpr std::size_t kCopyWordsBytes = 2000;

/// The ssh command with its options, without the host. The user's options come first: if an option is given
/// twice, ssh uses the first value.
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
                // ssh may use an existing shared connection, but does not share a new one, which would have
                // to outlive the process for which it was made.
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

/// The rsync command that copies the content of the current directory to the host. rsync splits the value of
/// -e into words at spaces outside quotes.
std::vector<std::string> CopyTo(const Options& options, const Host& host) {
  Host target = host;
  if (host.name.find(':') != std::string::npos) target.name = fmt::format("[{}]", host.name);  // IPv6
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
          fmt::format("{}:{}/", target.Login(), options.sync_dst_dir)};
}

PlannedProcess ForHost(PlannedProcess process, const Host& host) {
  process.environment = WithDefaults(PassedOn(), process.environment);
  process.environment.emplace_back("DMLC_NODE_HOST", host.name);
  return process;
}

/// The name or address that ssh, according to its configuration, connects to for the host.
std::string RealName(const Options& options, const Host& host) {
  std::vector<std::string> words = SshWords(options, host);
  words.insert(words.end(), {"-G", "--", host.Login()});
  std::istringstream lines(Capture(words, SearchPath()).out);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("hostname ")) return line.substr(9);
  }
  return host.name;
}

/// The names or addresses that ssh, according to its configuration, connects to for the job's hosts.
std::vector<std::string> SshHosts(const Options& options) {
  std::vector<std::string> names;
  for (const Host& host : HostsAtStart(options)) names.push_back(RealName(options, host));
  return names;
}

/// The address at which the processes reach this machine, as tracker::AddressTowards finds it for the job's
/// hosts.
tracker::Reached RouteToSshHosts(const Options& options) {
  std::vector<std::string> names;
  for (const Host& host : HostsAtStart(options)) {
    names.push_back(RealName(options, host));
    tracker::Reached reached = tracker::AddressTowards({names.back()});
    if (!reached.by.empty()) return {std::move(reached.address), host.name};
  }
  return tracker::AddressTowards(names);
}

/// The address at which the other workers reach worker 0 (in an elastic job, the worker that is started
/// first), which runs on `host`. A name such as localhost would mean a different machine on each host. It is
/// therefore replaced by an address of dmlc-submit's machine, where that worker then runs, unless all hosts
/// have such names.
std::string MasterOf(const Options& options, const std::vector<Host>& hosts, std::size_t host) {
  const auto is_loopback = [](const std::string& name) {
    return name == "localhost" || name == "::1" || name.starts_with("127.");
  };
  const std::string name = RealName(options, hosts[host]);
  const bool all_here =
      std::all_of(hosts.begin(), hosts.end(), [&](const Host& one) { return is_loopback(one.name); });
  return is_loopback(name) && !all_here ? RouteToSshHosts(options).address : name;
}

/// The host of worker 0, whose slot follows the slots of the servers. In an elastic job, this is its host
/// only at the first start.
std::size_t HostOfWorker0(const Options& options, const std::vector<std::size_t>& places) {
  return places[static_cast<std::size_t>(options.num_servers)];
}

/// Throws std::runtime_error if the hosts have too few slots for an elastic job to start and there is no
/// discovery script that might find more.
void CheckRoom(const Options& options, const std::vector<HostRoom>& rooms) {
  const auto least = static_cast<std::size_t>(*options.min_workers);
  const std::size_t slots = NumSlots(rooms, least);
  if (slots >= least || !options.host_discovery.empty()) return;
  throw std::runtime_error(fmt::format(
      "--num-workers {}:{}: the hosts of the host file have {} slot{}; write 'slots=N' after a host that may run "
      "N workers, or add hosts",
      *options.min_workers, options.num_workers, slots, slots == 1 ? "" : "s"));
}

/// The first lines of the output of --dry-run for an elastic job.
std::string ShowHosts(const Options& options, const std::vector<Host>& hosts) {
  std::string text = fmt::format("# hosts from {}, which is read again during the job:{}\n",
                                 HostsFrom(options), hosts.empty() ? " none yet" : "");
  for (const Host& host : hosts) text += fmt::format("#   {}\n", host.Line());
  return text;
}

std::vector<SshHost> HostsOf(const std::vector<Host>& hosts) {
  std::vector<SshHost> named;
  for (const Host& host : hosts) named.push_back({host.name, host.slots});
  return named;
}

/// The hosts of an elastic job, named by Host::Id.
std::vector<HostRoom> RoomsOf(const std::vector<Host>& hosts) {
  std::vector<HostRoom> rooms;
  for (const Host& host : hosts) rooms.push_back({host.Id(), host.slots});
  return rooms;
}

/// The index of the host for each slot. In an elastic job, these are all slots that may be used, host by
/// host; in other jobs, one for each process.
std::vector<std::size_t> PlacesFor(const Options& options, const std::vector<Host>& hosts) {
  if (options.min_workers) {
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < hosts.size(); ++i)
      places.insert(places.end(), static_cast<std::size_t>(std::min(hosts[i].slots, options.num_workers)), i);
    return places;
  }
  return PlacesOn(
      hosts, static_cast<std::size_t>(options.num_workers) + static_cast<std::size_t>(options.num_servers));
}

class SshCluster : public Cluster {
 public:
  /// Reads the host file or the output of the discovery script. Throws std::runtime_error if the file is
  /// invalid, or if its hosts may not run enough processes: because of max_slots or, in an elastic job,
  /// because they have too few slots. In an elastic job, the file is read again, or the script is run again,
  /// during the job.
  explicit SshCluster(ClusterContext context);

  void Prepare(const std::function<void()>& ready) override;
  Started Start(std::size_t index, const PlannedProcess& process, int attempt) override;
  void Stop() override;
  void Kill() override;
  void AskToLeave(std::size_t index) override;
  void Dump(std::size_t index, std::function<void(std::string text)> done) override;
  bool busy() const override { return !copies_.empty(); }

 private:
  bool is_elastic() const { return options_.min_workers.has_value(); }
  void TakeHosts(std::vector<Host> hosts);
  std::size_t HostFor(std::size_t index, const PlannedProcess& process);
  std::size_t PlaceOfProcess(std::size_t index) const;

  void Do(const CopyToHost& copy);
  void Do(const StopCopies& stop);
  void Do(const HostsReady& ready);
  void Do(const ConnectSsh& connect);
  void Do(const SendCores& send);
  void Do(const SendLine& send);
  void Do(const EndInput& end);
  void Do(const StopSsh& stop);
  void Do(const KillSshs& kill);
  void Do(const StacksArrived& stacks);
  void Do(const ClusterEvent& event);

  Children& children_;
  const Options& options_;
  ClusterEvents events_;
  std::string job_mark_;
  std::vector<Host> hosts_;      ///< in an elastic job, all hosts so far, each with the most slots it has had
  std::vector<HostRoom> rooms_;  ///< the current hosts of an elastic job
  std::vector<std::size_t> places_;  ///< the index of the host for each slot
  MovedWorkers moved_;
  /// In an elastic job, the host index and the slot of each process that has been started, by process index.
  std::map<std::size_t, std::pair<std::size_t, int>> slot_of_;
  /// The address at which the other workers reach worker 0 or, in an elastic job, the worker that was started
  /// first.
  std::string master_;
  std::size_t master_host_ = 0;  ///< the index of its host
  /// The indices of the hosts of which a message has explained why their processes are not bound.
  std::set<std::size_t> told_not_bound_;
  std::function<void()> ready_;
  std::map<SshId, pid_t> pids_;
  std::set<pid_t> copies_;
  StackRequests stack_requests_;
  std::optional<HostSource> source_;  ///< only in an elastic job
  SshController controller_;
  ActionLoop<SshController, SshAction> loop_;
};

SshCluster::SshCluster(ClusterContext context)
    : children_(context.children),
      options_(context.options),
      events_(std::move(context.events)),
      job_mark_(NewJobMark()),
      hosts_(HostsAtStart(options_)),
      rooms_(RoomsOf(hosts_)),
      places_(PlacesFor(options_, hosts_)),
      stack_requests_(context.io),
      controller_(HostsOf(hosts_), places_, job_mark_, options_.sync_dst_dir, is_elastic()),
      loop_(context.io, controller_, [this](const auto& action) { Do(action); }) {
  if (!is_elastic()) return;
  CheckRoom(options_, rooms_);
  source_.emplace(context.io, children_, options_, hosts_,
                  [this](std::vector<Host> hosts) { TakeHosts(std::move(hosts)); });
}

void SshCluster::Prepare(const std::function<void()>& ready) {
  ready_ = ready;
  if (is_elastic()) master_.clear();
  controller_.Prepare();
  loop_.RunSoon();
}

/// Updates the hosts of an elastic job after the host file or the script has been read again.
void SshCluster::TakeHosts(std::vector<Host> hosts) {
  rooms_ = RoomsOf(hosts);
  for (Host& host : hosts) {
    const auto known =
        std::find_if(hosts_.begin(), hosts_.end(), [&](const Host& one) { return one.Id() == host.Id(); });
    if (known != hosts_.end()) {
      known->slots = std::max(known->slots, host.slots);
    } else {
      controller_.AddHost({host.name, host.slots});
      hosts_.push_back(std::move(host));
    }
  }
  places_ = PlacesFor(options_, hosts_);
  events_.hosts_changed(rooms_);
}

std::size_t SshCluster::HostFor(std::size_t index, const PlannedProcess& process) {
  if (!process.seat) return controller_.HostFor(PlaceOf(options_, index), steady_clock::now());
  const auto host = std::find_if(hosts_.begin(), hosts_.end(),
                                 [&](const Host& one) { return one.Id() == process.seat->host; });
  const auto found = static_cast<std::size_t>(host - hosts_.begin());
  slot_of_[index] = {found, process.seat->slot};
  return found;
}

/// The index in places_ of a process for which HostFor has been called. In an elastic job, it may change when
/// hosts or slots are added.
std::size_t SshCluster::PlaceOfProcess(std::size_t index) const {
  const auto found = slot_of_.find(index);
  return found == slot_of_.end() ? PlaceOf(options_, index)
                                 : SeatedPlace(places_, found->second.first, found->second.second);
}

Started SshCluster::Start(std::size_t index, const PlannedProcess& process, int attempt) {
  const std::size_t host = HostFor(index, process);
  const std::size_t place = PlaceOfProcess(index);
  if (process.role == tracker::Role::kWorker) {
    moved_.Start(place, host, places_[place] != host);
    const bool is_master = !is_elastic() && process.task_id == 0;
    if (master_.empty() || (is_master && host != master_host_)) {
      master_ = MasterOf(options_, hosts_, host);
      master_host_ = host;
    }
  }
  PlannedProcess placed = ForHost(process, hosts_[host]);
  AddPlace(options_, places_, moved_, place, host, master_, placed);
  std::string script =
      WatchedScript(placed, index, attempt, job_mark_, WorkingDirectory(options_),
                    ShareOf(options_, process, places_, place, host), BindOf(options_) != Bind::kNone);
  controller_.Start(index, host, std::move(script), steady_clock::now());
  loop_.RunSoon();
  return {-1, hosts_[host].name};
}

void SshCluster::Stop() {
  if (source_) source_->Stop();
  controller_.Stop(steady_clock::now());
  loop_.RunSoon();
}

void SshCluster::Kill() {
  controller_.Kill();
  loop_.RunSoon();
}

void SshCluster::AskToLeave(std::size_t index) {
  controller_.AskToLeave(index);
  loop_.RunSoon();
}

void SshCluster::Dump(std::size_t index, std::function<void(std::string text)> done) {
  if (!stack_requests_.Ask(index, std::move(done))) return;
  if (!controller_.AskForStacks(index)) stack_requests_.End(index, "it is not running");
  loop_.RunSoon();
}

// --- actions ---------------------------------------------------------------------------------------------

void SshCluster::Do(const CopyToHost& copy) {
  const auto said = std::make_shared<std::string>();
  const auto pid = std::make_shared<pid_t>(-1);
  try {
    *pid = children_.Start(
        {FindCommand("rsync", SearchPath()).file, CopyTo(options_, hosts_[copy.host]), InheritedWith({}, {})},
        {[said](Stream, std::string_view bytes) { AppendToTail(*said, bytes, kCopyWordsBytes); },
         [this, said, pid, host = copy.host](const ExitStatus& status) {
           copies_.erase(*pid);
           controller_.CopyEnded(host, status, *said);
           loop_.Run();
           if (!busy()) events_.idle();
         }});
    copies_.insert(*pid);
  } catch (const std::runtime_error& error) {
    controller_.CopyFailed(error.what());
  }
}

void SshCluster::Do(const StopCopies&) {
  children_.Stop(copies_);
}

void SshCluster::Do(const HostsReady&) {
  if (source_) {
    events_.hosts_changed(rooms_);
    source_->Begin();
  }
  ready_();
}

void SshCluster::Do(const ConnectSsh& connect) {
  const SshId ssh = connect.ssh;
  try {
    pids_[ssh] = children_.Start({FindCommand("ssh", SearchPath()).file,
                                  ShellOn(options_, hosts_[connect.host]), InheritedWith({}, {}), true},
                                 {[this, ssh](Stream stream, std::string_view bytes) {
                                    controller_.Wrote(ssh, stream, bytes);
                                    loop_.Run();
                                  },
                                  [this, ssh](const ExitStatus& status) {
                                    pids_.erase(ssh);
                                    controller_.Exited(ssh, status, steady_clock::now());
                                    loop_.Run();
                                  }});
  } catch (const std::runtime_error& error) {
    const std::string why = fmt::format("could not be started: {}", error.what());
    return controller_.NotConnected(ssh, ExitStatus{kNotFound, 0, false, why});
  }
  children_.Write(pids_[ssh], connect.script);
}

void SshCluster::Do(const SendCores& send) {
  const std::size_t place = PlaceOfProcess(send.index);
  const Host& host = hosts_[send.host];
  const PlaceCores cores = ChooseCores(options_, places_, place, send.host, send.report);
  if (!cores.host.why_not.empty() && told_not_bound_.insert(send.host).second) {
    spdlog::log(cores.host.too_few ? spdlog::level::warn : spdlog::level::info, "{}",
                NotBoundStory(BindOf(options_), cores.host, host.name));
  }
  if (!cores.own.empty()) {
    const bool serves = place < static_cast<std::size_t>(options_.num_servers);
    const auto own = static_cast<int>(is_elastic() ? send.index : place);
    const int task_id = own - (serves ? 0 : options_.num_servers);
    spdlog::debug("{} is bound to {} of {}",
                  ProcessName(serves ? tracker::Role::kServer : tracker::Role::kWorker, task_id),
                  NamedCores(cores.own), host.name);
  }
  Do(SendLine{send.ssh, ShowCoreList(cores.own) + "\n"});
}

void SshCluster::Do(const SendLine& send) {
  if (const auto found = pids_.find(send.ssh); found != pids_.end())
    children_.Write(found->second, send.line);
}

void SshCluster::Do(const EndInput& end) {
  if (const auto found = pids_.find(end.ssh); found != pids_.end()) children_.CloseInput(found->second);
}

void SshCluster::Do(const StopSsh& stop) {
  if (const auto found = pids_.find(stop.ssh); found != pids_.end()) children_.Stop({found->second});
}

void SshCluster::Do(const KillSshs&) {
  std::set<pid_t> all = copies_;
  for (const auto& [ssh, pid] : pids_) all.insert(pid);
  children_.Kill(all);
}

void SshCluster::Do(const StacksArrived& stacks) {
  stack_requests_.Take(stacks.message);
}

void SshCluster::Do(const ClusterEvent& event) {
  if (const auto* const exited = std::get_if<ProcessExited>(&event))
    stack_requests_.End(exited->index, "it has ended");
  Deliver(event, events_);
}

/// Makes the output of --dry-run: the commands that copy files and, for each process, the ssh command and its
/// standard input.
std::string ShowSsh(const Options& options, const std::vector<PlannedProcess>& plan) {
  const std::vector<Host> hosts = HostsAtStart(options);
  std::string text;
  if (options.min_workers) text += ShowHosts(options, hosts);
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
  const std::vector<std::size_t> places = PlacesFor(options, hosts);
  if (places.empty()) return text;
  const std::string master = MasterOf(options, hosts, HostOfWorker0(options, places));
  for (std::size_t i = 0; i < plan.size(); ++i) {
    if (plan[i].role == tracker::Role::kScheduler) {
      text += ShowPlan({plan[i]});
      continue;
    }
    const std::size_t own = PlaceOf(options, i);
    if (own >= places.size()) {
      text += fmt::format("# {} starts when a host has room\n", ProcessName(plan[i].role, plan[i].task_id));
      continue;
    }
    const Host& host = hosts[places[own]];
    PlannedProcess placed = ForHost(plan[i], host);
    AddPlace(options, places, {}, own, places[own], master, placed);
    text += fmt::format("# {}, standard input stays open\n{}", ProcessName(plan[i].role, plan[i].task_id),
                        WithInput(ShellCommand(ShellOn(options, host)),
                                  WatchedScript(placed, i, 0, "JOB", WorkingDirectory(options),
                                                ShareOf(options, plan[i], places, own, places[own]), binds)));
  }
  return text;
}

}  // namespace

ClusterEntry SshEntry() {
  ClusterEntry entry;
  entry.name = "ssh";
  entry.may_lose_workers = true;
  entry.where = "the hosts of a host file";
  entry.make = [](ClusterContext context) -> std::unique_ptr<Cluster> {
    return std::make_unique<SshCluster>(std::move(context));
  };
  entry.show = [](const Options& options, const std::vector<PlannedProcess>& plan, const std::string&) {
    return ShowSsh(options, plan);
  };
  entry.host = [](const Options& options) {
    JobHost host = HostByRoute(RouteToSshHosts(options));
    if (HostsAtStart(options).empty()) host.why = "the default route, since no hosts are known yet";
    return host;
  };
  entry.known_hosts = SshHosts;
  entry.hosts_from = HostsFrom;
  entry.complete = Discover;
  entry.check = [](const Options& options) {
    if (options.host_discovery.empty()) return;
    if (!options.min_workers)
      throw UsageError(
          "--host-discovery needs --num-workers MIN:MAX: other jobs keep the hosts that they start on");
    if (!options.host_file.empty())
      throw UsageError("--host-discovery and --host-file both name the hosts; give one of the two");
  };
  entry.core_sharing = CoreSharing::kTheirHost;
  entry.shared_options = {"--bind", "--host-file"};
  entry.own_options = {
      {"--host-discovery",
       "SCRIPT",
       "",
       "With --num-workers MIN:MAX: a shell command that prints the hosts, one per line: host, or host:slots. It runs at the start and every 5 s. Workers start on hosts that come, and leave those that go after their round.",
       Text<&Options::host_discovery>,
       false,
       {"--host-discovery-script"}},
      {"--sync-dst-dir", "DIR", "",
       "Copy the current directory to DIR on every host with rsync, and run the processes there.",
       Text<&Options::sync_dst_dir>},
      {"--ssh-host-keys", "strict|accept-new|ignore", "strict",
       "Treatment of hosts with unknown keys: strict refuses them unless your ssh configuration says otherwise, accept-new adds their keys, ignore does not check keys.",
       OneOf(&Options::ssh_host_keys, {{"strict", HostKeys::kStrict},
                                       {"accept-new", HostKeys::kAcceptNew},
                                       {"ignore", HostKeys::kIgnore}})},
      {"--ssh-options", "WORDS", "",
       "More options for ssh, such as '-i key -J jump'; quote words that contain spaces.",
       Words<&Options::ssh_options>, true},
  };
  return entry;
}

}  // namespace warren::submit
