// The interface of a cluster: a way of running and watching the processes of a job. What to start, and what
// to do when a process ends, is decided elsewhere (job/plan.h, job/supervisor.h); a cluster only carries out
// these decisions. Each cluster has its own file and a ClusterEntry that describes it; clusters.h has the
// registry of the entries.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "submit/cluster/seats.h"
#include "submit/options/cluster_facts.h"
#include "submit/options/options.h"
#include "submit/process/children.h"
#include "submit/process/kept_job.h"
#include "submit/process/planned_process.h"
#include "submit/process/process.h"
#include "submit/process/sample.h"
#include "submit/process/stream.h"
#include "tracker/host_address.h"

namespace warren::submit {

/// Callbacks for events, called from the io_context. `index`: the process's index in the plan.
struct ClusterEvents {
  std::function<void(std::size_t index, Stream stream, std::string_view bytes)> output;
  /// Reports where the process runs, unless Start has already returned its host and process ID. May be called
  /// more than once, as more becomes known.
  std::function<void(std::size_t index, const Started& where)> located;
  /// The process and everything it started have ended, and all of their output has been delivered.
  std::function<void(std::size_t index, const ExitStatus& status)> exited;
  /// Reports the state and resource usage of the process and everything it has started, about every
  /// kSampleInterval. This also shows that its host is up. Not called if dmlc-submit does not watch the
  /// process (on Kubernetes, or on a host without bash under a launcher). Samples from other hosts may be
  /// missing while output is left unread (PauseOutput).
  std::function<void(std::size_t index, const ProcessSample& sample)> sampled;
  /// Output of the launcher itself, or of a tracker that the cluster runs: a line, or part of one.
  std::function<void(const std::string& launcher, Stream stream, std::string_view piece)> said;
  /// The job is waiting in a queue or has just left it. The time limit for missing workers starts again.
  std::function<void()> waits;
  /// The queue has ended all processes and will start them again. The job must be stopped and restarted;
  /// Start then takes over the new processes.
  std::function<void(const std::string& story)> requeued;
  /// Reports everything that the cluster now keeps for the job and would still keep if dmlc-submit were gone.
  std::function<void(const std::vector<KeptJob>& jobs)> keeps;
  /// Cluster::busy() has become false.
  std::function<void()> idle;
  /// Reports the hosts of an elastic job, in the order in which they are filled: before `ready` (Prepare),
  /// and whenever they have changed. Called only by clusters whose entry has `hosts_from`.
  std::function<void(const std::vector<HostRoom>& hosts)> hosts_changed;
  /// The tracker that the cluster runs has ended although the job has not.
  std::function<void(const std::string& story)> tracker_failed;
  /// The job cannot continue, for a reason other than a failed process.
  std::function<void(const std::string& story)> trouble;
};

class Cluster {
 public:
  Cluster() = default;
  virtual ~Cluster() = default;
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  /// Prepares the next start of the job, e.g. by copying files. Then calls `ready`, possibly before this
  /// function returns, or, if the preparation failed, `trouble`.
  virtual void Prepare(const std::function<void()>& ready) { ready(); }
  /// Starts a process of the plan for the given attempt; `exited` is called later. Throws StartError.
  virtual Started Start(std::size_t index, const PlannedProcess& process, int attempt) = 0;
  /// Asks a process to leave the job at its own pace, with SIGTERM, as a scheduler does before it reclaims a
  /// machine. Only for clusters whose entry has `hosts_from`.
  virtual void AskToLeave(std::size_t) {}
  /// Whether a worker of an elastic job has reported that the job's work is done. Only for clusters that run
  /// the tracker themselves.
  virtual bool work_is_done() const { return false; }
  /// Call when the work of an elastic job is done and all workers that had joined the job have left it. The
  /// cluster then ends the workers that it has not been able to start.
  virtual void WorkersFinished() {}
  /// Asks every process to end, and kills those still running after a grace period. `exited` is called for
  /// each.
  virtual void Stop() = 0;
  /// Kills every process immediately.
  virtual void Kill() = 0;
  /// Whether a command of the cluster itself is still running, e.g. a launcher or a command that cancels a
  /// job. `idle` is called when all such commands have ended.
  virtual bool busy() const { return false; }
  /// Whether the scheduler of a parameter-server job also runs on the cluster, rather than on
  /// dmlc-submit's machine.
  virtual bool runs_scheduler() const { return false; }
  /// Collects the stacks of the process and its descendants, up to 8 processes in total, with py-spy, gdb and
  /// the kernel's /proc, as far as these are available on its host and permitted. Calls `done` once, from the
  /// io_context, within about half a minute, with about 64 kB of human-readable text at most: the stacks, or
  /// why they are unavailable. For many processes, use a DumpQueue (dump_queue.h).
  virtual void Dump(std::size_t index, std::function<void(std::string text)> done);
  /// Leaves output unread until ResumeOutput, except for output that comes through Children, which has its
  /// own PauseOutput.
  virtual void PauseOutput() {}
  virtual void ResumeOutput() {}
};

class Console;

/// The arguments for making a cluster.
struct ClusterContext {
  boost::asio::io_context& io;
  Children& children;      ///< starts processes on this machine
  const Options& options;  ///< outlives the cluster
  std::string host;        ///< the address at which processes reach the tracker or scheduler (HostOfJob)
  ClusterEvents events;
};

/// The address of this machine for processes that run on it.
inline constexpr char kLoopback[] = "127.0.0.1";

/// The address at which processes reach the tracker or the scheduler.
struct JobHost {
  std::string address;
  std::string why = {};    ///< what the address is derived from, e.g. "the route to node1"; empty if obvious
  std::uint16_t port = 0;  ///< the port if the cluster runs the tracker or scheduler; 0 if dmlc-submit does
};

/// Makes a JobHost from the address of this machine on the route to a host or on the default route.
JobHost HostByRoute(const tracker::Reached& reached);

/// Shown by --dry-run instead of the random token of each job.
inline constexpr char kShownSecret[] = "MADE-FOR-EACH-JOB";

/// How the workers on a host share its cores if --worker-cores is not given.
enum class CoreSharing {
  kNone,      ///< not at all: the cluster decides on a worker's cores
  kHere,      ///< all workers share the cores of this machine; the number of cores is known before the start
  kTheirHost  ///< workers share the cores of their host; the cluster's scripts determine the number of cores
};

/// The description of a cluster: a row of the registry. The functions may throw std::runtime_error, or
/// UsageError if the options are wrong.
struct ClusterEntry : ClusterFacts {
  // Required, in addition to `name` and `where`.
  std::function<std::unique_ptr<Cluster>(ClusterContext)> make;
  /// Makes the output of --dry-run: the commands to be run, or the files to be used, in a form that can be
  /// pasted. `host` is as in ClusterContext.
  std::function<std::string(const Options&, const std::vector<PlannedProcess>& plan, const std::string& host)>
      show;
  /// The address at which processes reach the tracker, unless --host-ip is given.
  std::function<JobHost(const Options&)> host;

  // Optional.
  CoreSharing core_sharing = CoreSharing::kNone;
  bool runs_here = false;  ///< processes run on this machine, so the command must be found here
  /// Whether processes run in their own directories, to which files are sent, rather than in the current
  /// directory or a copy of it.
  bool has_own_directories = false;
  /// A file named by the command is not sent if it is larger than this.
  std::uintmax_t max_file_bytes = std::numeric_limits<std::uintmax_t>::max();
  /// The names or addresses of all hosts that processes may run on, if they are known before the start.
  std::function<std::vector<std::string>(const Options&)> known_hosts = nullptr;
  /// The address of the tracker or the scheduler if the cluster itself runs it, for start number `start`
  /// (from 0) of the job. The port is 0 if the cluster does not run it with these options.
  std::function<JobHost(const Options&, int start)> own_tracker = nullptr;
  /// Returns the name of the source of the hosts for messages, e.g. "the host file". Set only if hosts may
  /// come and go during an elastic job, whose processes are then given seats (seats.h).
  std::function<std::string(const Options&)> hosts_from = nullptr;
  /// Whether the cluster itself restarts lost workers of an elastic job, on a host of its choice, and reports
  /// those that it does not restart (ExitStatus::place_lost).
  bool replaces_workers = false;
  /// Sets the options that are left to the cluster, before anything is planned.
  std::function<void(Options&)> complete = nullptr;
  /// Exports the job if the options request that, e.g. to a file. Called with the output of `show`, before
  /// anything is started; making that output reveals errors early, even if nothing is exported. Returns
  /// whether the job was exported; if so, nothing is started.
  std::function<bool(const Options&, const std::string& shown, Console& console)> export_job = nullptr;
};

}  // namespace warren::submit
