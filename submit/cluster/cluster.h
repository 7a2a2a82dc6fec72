// One way of getting the processes of a job onto machines and watching them there. What to start, and what to
// do when something ends, is decided elsewhere (plan.h, supervisor.h); a cluster only does it. Each has a
// file of its own, with all that is known of it in a ClusterEntry; clusters.h has the registry of these.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "submit/options.h"
#include "submit/plan.h"
#include "submit/process/children.h"
#include "submit/process/process.h"
#include "submit/process/sample.h"
#include "submit/process/stream.h"
#include "tracker/host_address.h"

namespace warren::submit {

/// What happens to the processes, each known by its index in the plan. Called from the io_context.
struct ClusterEvents {
  std::function<void(std::size_t index, Stream stream, std::string_view bytes)> output;
  /// Where it runs is known now, later than Start returned.
  std::function<void(std::size_t index, const Started& where)> located;
  /// The process and everything it left behind is gone, and all of its output has been delivered.
  std::function<void(std::size_t index, const ExitStatus& status)> exited;
  /// How the process and all that it has started are doing, about every kSampleInterval, and that its host
  /// lives. Not where nothing of dmlc-submit's stands beside the process (Kubernetes; a host without bash
  /// under a launcher), and not while output is left where it is (PauseOutput).
  std::function<void(std::size_t index, const ProcessSample& sample)> sampled;
  /// The launcher itself said something: a line, or a piece of one.
  std::function<void(const std::string& launcher, Stream stream, std::string_view piece)> said;
  /// The job waits in a queue: how long workers are missing is counted from here anew.
  std::function<void()> waits;
  /// The queue has ended all processes and will start them anew: the job is to be stopped and begun again,
  /// and Start will find them.
  std::function<void(const std::string& story)> requeued;
  /// Cluster::busy() has become false.
  std::function<void()> idle;
  /// The tracker that the cluster runs has ended although the job has not.
  std::function<void(const std::string& story)> tracker_failed;
  /// The job cannot go on, for a reason that is no process's.
  std::function<void(const std::string& story)> trouble;
};

class Cluster {
 public:
  Cluster() = default;
  virtual ~Cluster() = default;
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  /// Does what has to be done before the first start of the job, such as copying files; calls `ready` then,
  /// from the io_context, or `trouble`.
  virtual void Prepare(const std::function<void()>& ready) { ready(); }
  /// Starts a process of the plan for the given attempt. `exited` follows. Throws StartError.
  virtual Started Start(std::size_t index, const PlannedProcess& process, int attempt) = 0;
  /// Asks every process to end, and ends it after a grace time. `exited` follows for each.
  virtual void Stop() = 0;
  /// Ends every process at once.
  virtual void Kill() = 0;
  /// True while something of the cluster's own still runs, such as a launcher, or the command that cancels a
  /// job. It calls `idle` when that has ended.
  virtual bool busy() const { return false; }
  /// True where the scheduler of a parameter-server job runs there, too, and not beside dmlc-submit.
  virtual bool runs_scheduler() const { return false; }
  /// Finds out where the process, and what it has started, are in their programs: by py-spy, gdb and the
  /// kernel, as far as its host has them and lets them. `done` is called once, from the io_context, after
  /// half a minute at the latest, with lines for a person, at most 64 kB, or with why there are none. For
  /// many processes: by a DumpQueue (dump_queue.h).
  virtual void Dump(std::size_t index, std::function<void(std::string text)> done);
  /// Leaves output where it is until ResumeOutput, as far as it does not come through Children.
  virtual void PauseOutput() {}
  virtual void ResumeOutput() {}
};

class Console;

/// What a cluster is made of.
struct ClusterContext {
  boost::asio::io_context& io;
  Children& children;      ///< by which it starts processes on this machine
  const Options& options;  ///< outlives the cluster
  std::string host;        ///< where processes reach this machine
  ClusterEvents events;
};

/// For processes that run on this machine.
inline constexpr char kLoopback[] = "127.0.0.1";

/// Where processes reach the tracker, or the scheduler.
struct JobHost {
  std::string address;
  std::string why = {};    ///< "the route to node1"; empty: nothing to explain
  std::uint16_t port = 0;  ///< where the cluster itself runs it; 0: it runs here
};

/// "the route to node1", or the default one.
JobHost HostByRoute(const tracker::Reached& reached);

/// Whose cores the workers of a host share when --worker-cores gives no number.
enum class CoreSharing {
  kNone,      ///< the cluster has its own idea of a worker's cores
  kHere,      ///< this machine's, on which all workers run: a number that is known before they start
  kTheirHost  ///< those of the host they run on: the cluster's scripts find them out
};

/// All that dmlc-submit knows of a cluster: a row of the registry. Functions may throw std::runtime_error,
/// and UsageError where the options are at fault.
struct ClusterEntry {
  // What must be there.
  std::string name;   ///< what --cluster takes
  std::string where;  ///< where its processes run, in a few words for --help
  std::function<std::unique_ptr<Cluster>(ClusterContext)> make;
  /// For --dry-run: what would be started, as commands or files that can be pasted. `host` as in
  /// ClusterContext.
  std::function<std::string(const Options&, const std::vector<PlannedProcess>& plan, const std::string& host)>
      show;
  /// Where the processes find the tracker unless --host-ip says so.
  std::function<JobHost(const Options&)> host;

  // What need not.
  bool experimental = false;                      ///< it has met stand-ins, or a small cluster by hand
  std::vector<std::string> shared_options = {};   ///< which of the options that are not for all it heeds
  std::vector<Option> own_options = {};           ///< options that are for this cluster alone
  CoreSharing core_sharing = CoreSharing::kNone;  ///< among the workers
  std::string bound_by = {};  ///< where --bind is not heeded: what binds processes instead
  bool runs_here = false;     ///< on this machine: what the command names must be here
  /// Processes run in directories of their own, into which files are sent, and not in the current one or one
  /// like it. No file that the command names is sent when it is longer than this.
  bool has_own_directories = false;
  std::uintmax_t max_file_bytes = std::numeric_limits<std::uintmax_t>::max();
  /// Names or addresses of all hosts that processes may run on, where they are known before the start.
  std::function<std::vector<std::string>(const Options&)> known_hosts = nullptr;
  /// Where the cluster runs the tracker, or the scheduler, itself, in the `start`th start (from 0) of the
  /// job; a port of 0: it does not, with these options.
  std::function<JobHost(const Options&, int start)> own_tracker = nullptr;
  /// Whether an option that it heeds does nothing together with the others.
  std::function<bool(const Options&, std::string_view name)> ignores = nullptr;
  /// Says what is wrong with the options.
  std::function<void(const Options&)> check = nullptr;
  /// Puts in what was left to the cluster, before anything is planned.
  std::function<void(Options&)> complete = nullptr;
  /// Given what `show` says of the job before anything is started, so that what is wrong with that is found.
  /// True: it was written where the options say, and nothing is to be started.
  std::function<bool(const Options&, const std::string& shown, Console& console)> export_job = nullptr;
};

}  // namespace warren::submit
