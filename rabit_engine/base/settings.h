// The settings of the engine, read in one place: `key=value` arguments of Init take precedence over the
// environment. wire/variables.cc has the names and the users' table of settings.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wire/job_token.h"

namespace warren {

enum class EngineKind { kNative, kMpi };
/// The way in which ranks find each other. kAuto uses the tracker if one is named; otherwise Session::Init
/// chooses the way that suits the launcher (BootstrapOfLauncher).
enum class BootstrapKind { kAuto, kTracker, kMpi, kSlurm, kNone };
enum class SharedMemory { kAuto, kOff };
/// Whether messages over a network are packed: if it saves time on the link, never, or whenever they get
/// shorter.
enum class Packing { kAuto, kOff, kAlways };

struct Settings {
  // --- the job ---
  std::string tracker_host;  ///< DMLC_TRACKER_URI, rabit_tracker_uri; empty: no tracker
  int tracker_port = 9000;   ///< DMLC_TRACKER_PORT, rabit_tracker_port
  /// DMLC_JOB_TOKEN: the tracker and the ranks prove to each other that they know this secret; nullopt: no
  /// proofs
  std::optional<wire::JobToken> job_token;
  bool tls = false;              ///< WARREN_TLS: encrypt connections to the tracker and TCP links
  std::string task_id = "NULL";  ///< DMLC_TASK_ID, rabit_task_id
  int world_size = -1;           ///< rabit_world_size; -1: the tracker decides
  int num_workers = 0;           ///< DMLC_NUM_WORKER: number of workers started by the launcher; 0: unknown
  int num_attempt = 0;           ///< DMLC_NUM_ATTEMPT: number of times this process has been restarted
  int max_attempt = 0;           ///< DMLC_MAX_ATTEMPT: maximum number of restarts of this process
  int connect_retry = 5;         ///< DMLC_WORKER_CONNECT_RETRY: attempts to reach the tracker or a peer
  std::string role = "worker";   ///< DMLC_ROLE

  // --- the engine ---
  EngineKind engine = EngineKind::kNative;         ///< WARREN_ENGINE = native | mpi
  BootstrapKind bootstrap = BootstrapKind::kAuto;  ///< WARREN_BOOTSTRAP = auto | tracker | mpi | slurm | none
  SharedMemory shared_memory = SharedMemory::kAuto;  ///< WARREN_SHARED_MEMORY = auto | off
  /// WARREN_HOST_GROUP: ranks on a host that have different group names share no memory, as if they were on
  /// different hosts
  std::string host_group;
  Packing packing = Packing::kAuto;  ///< WARREN_PACKING = auto | off | always
  bool reproducible = true;  ///< WARREN_REPRODUCIBLE: the order of reduction depends only on the ranks
  std::string algorithm;     ///< WARREN_ALGORITHM: "ring" or "allreduce=ring,broadcast=tree"
  std::string algorithm_name = "WARREN_ALGORITHM";  ///< the name by which `algorithm` was set, for errors
  bool print_choice = false;                        ///< WARREN_PRINT_CHOICE: print each new choice to stderr
  /// rabit_reduce_buffer: accepted for compatibility with rabit, but not used.
  std::size_t reduce_buffer_bytes = std::size_t{256} << 20;
  /// rabit_timeout_sec with rabit_timeout=1: how long a collective may wait for a peer that is alive; 0:
  /// forever. The death of a peer's process is noticed immediately in any case.
  std::chrono::seconds collective_timeout{0};
  /// WARREN_CONNECT_TIMEOUT: the timeout of a connection attempt or a handshake.
  std::chrono::seconds connect_timeout{30};
  std::chrono::seconds host_timeout{30};  ///< WARREN_HOST_TIMEOUT: silence after which a host counts as lost
  /// WARREN_WORKER_PORTS = FIRST:LAST: the ports on which this rank may listen for other ranks; 0: any free
  /// port
  int first_port = 0;
  int last_port = 0;
  bool tcp_no_delay = true;  ///< rabit_enable_tcp_no_delay
  bool debug = false;        ///< rabit_debug
  std::string timeline;      ///< WARREN_TIMELINE: the timeline's file, to whose name the rank is added

  /// WARREN_REPORT_SECONDS: the interval at which this process reports its state to the tracker, longer in
  /// large jobs; 0: never
  std::chrono::milliseconds report_every{0};
  /// WARREN_REPORT_TIMELINE: whether this process also reports its timeline
  bool report_timeline = false;

  // --- named operations: read here, used by api/named_calls.h ---
  /// WARREN_FUSION_THRESHOLD: the maximum size, in bytes, of small allreduces that are combined into one; 0:
  /// none are combined
  std::size_t fusion_bytes = std::size_t{2} << 20;
  std::chrono::microseconds cycle{1000};  ///< WARREN_CYCLE_TIME_US: how long operations are collected
  bool autotune = false;                  ///< WARREN_AUTOTUNE: find the best fusion_bytes and cycle by trial
  /// WARREN_STALL_SECONDS: time until a warning names the ranks that a named operation or a call
  /// (engine/call_watch.h) waits for
  std::chrono::seconds stall_warning{60};

  // --- recovery: read here, used by recovery/ ---
  /// rabit_timeout_sec: how long ranks wait for a lost rank to be restarted
  std::chrono::seconds recovery_timeout{1800};
  int global_replica = 5;         ///< rabit_global_replica: number of ranks that keep each result
  int local_replica = 2;          ///< rabit_local_replica: number of other ranks that keep a local model
  bool bootstrap_cache = false;   ///< rabit_bootstrap_cache: keep results even before LoadCheckPoint
  std::vector<std::string> mock;  ///< mock=rank,version,seqno,trial
};

inline constexpr const char* kReportVariable = "WARREN_REPORT_SECONDS";

/// Returns the engine that is used if WARREN_ENGINE is not set: native, or MPI in programs linked with
/// librabit_mpi, which overrides the weak definition (mpi/mpi_by_default.cc).
EngineKind DefaultEngine();

/// Reads `key=value` arguments and the environment. Arguments of another form or with unknown keys are
/// ignored. Throws Misuse if a value is invalid; the message names the key, the value (unless it is secret)
/// and what was expected.
Settings ReadSettings(std::span<const std::string> arguments);

}  // namespace warren
