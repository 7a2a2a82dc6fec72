// Everything a user can set, read in one place: `key=value` arguments of Init win over the environment.
// docs/explanation/engine.md has the same table for users.
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
/// How ranks find each other: kAuto takes the tracker when one is named, Slurm or MPI only when asked.
enum class BootstrapKind { kAuto, kTracker, kMpi, kSlurm, kNone };
enum class SharedMemory { kAuto, kOff };

struct Settings {
  // --- the job ---
  std::string tracker_host;  ///< DMLC_TRACKER_URI, rabit_tracker_uri; empty or "NULL": no tracker
  int tracker_port = 9000;   ///< DMLC_TRACKER_PORT, rabit_tracker_port
  /// DMLC_JOB_TOKEN: proved to the tracker and to every rank, and they to this one; none: nothing is proved
  std::optional<wire::JobToken> job_token;
  bool tls = false;              ///< RABIT_TLS: connections to the tracker and links are encrypted
  std::string task_id = "NULL";  ///< DMLC_TASK_ID, rabit_task_id
  int world_size = -1;           ///< rabit_world_size; -1: the tracker knows
  int num_workers = 0;           ///< DMLC_NUM_WORKER: how many a launcher started; 0: not known
  int num_attempt = 0;           ///< DMLC_NUM_ATTEMPT: how often this process was restarted
  int max_attempt = 0;           ///< DMLC_MAX_ATTEMPT: how often the launcher restarts one that fails
  int connect_retry = 5;         ///< DMLC_WORKER_CONNECT_RETRY: tries to reach the tracker or a peer
  std::string role = "worker";   ///< DMLC_ROLE

  // --- the engine ---
  EngineKind engine = EngineKind::kNative;         ///< RABIT_ENGINE = native | mpi
  BootstrapKind bootstrap = BootstrapKind::kAuto;  ///< RABIT_BOOTSTRAP = auto | tracker | mpi | slurm | none
  SharedMemory shared_memory = SharedMemory::kAuto;  ///< RABIT_SHARED_MEMORY = auto | off
  /// RABIT_HOST_GROUP: ranks of one host with different names here share no memory, as if on different hosts
  std::string host_group;
  bool reproducible = true;   ///< RABIT_REPRODUCIBLE: the order is fixed by rank alone
  std::string algorithm;      ///< RABIT_ALGORITHM: "ring" or "allreduce=ring,broadcast=tree"
  bool print_choice = false;  ///< RABIT_PRINT_CHOICE: log each new choice to stderr
  std::size_t reduce_buffer_bytes = std::size_t{256}
                                    << 20;  ///< rabit_reduce_buffer = 256MB: limit of scratch memory
  /// rabit_timeout_sec with rabit_timeout=1: how long a collective may wait for a peer; 0: for ever. A peer
  /// that has died is noticed at once in any case.
  std::chrono::seconds collective_timeout{0};
  std::chrono::seconds connect_timeout{30};  ///< RABIT_CONNECT_TIMEOUT: for one connection or handshake
  std::chrono::seconds host_timeout{30};     ///< RABIT_HOST_TIMEOUT: silence after which a host is gone
  bool tcp_no_delay = true;                  ///< rabit_enable_tcp_no_delay
  bool debug = false;                        ///< rabit_debug
  std::string timeline;                      ///< WARREN_TIMELINE: a file for what happened when

  /// WARREN_REPORT_SECONDS: how often the tracker is told how this process is doing; 0: never
  std::chrono::milliseconds report_every{0};
  /// WARREN_REPORT_TIMELINE: what happened when is reported, too
  bool report_timeline = false;

  // --- named operations: read here, used by api/named_calls.h ---
  /// WARREN_FUSION_THRESHOLD: small allreduces are packed up to so many bytes; 0: never
  std::size_t fusion_bytes = std::size_t{2} << 20;
  std::chrono::microseconds cycle{1000};  ///< WARREN_CYCLE_TIME_US: how long names are collected
  bool autotune = false;                  ///< WARREN_AUTOTUNE: both of these are found by trying
  /// WARREN_STALL_SECONDS: until it is said whom a name waits for, or a call (engine/call_watch.h)
  std::chrono::seconds stall_warning{60};

  // --- recovery: read here, used by recovery/ ---
  /// rabit_timeout_sec: how long ranks wait for one that was lost to be started again
  std::chrono::seconds recovery_timeout{1800};
  int global_replica = 5;         ///< rabit_global_replica
  int local_replica = 2;          ///< rabit_local_replica
  bool bootstrap_cache = false;   ///< rabit_bootstrap_cache
  std::vector<std::string> mock;  ///< mock=rank,version,seqno,trial
};

inline constexpr const char* kReportVariable = "WARREN_REPORT_SECONDS";

/// The engine where RABIT_ENGINE is not set: native; MPI in programs linked with librabit_mpi
/// (mpi/mpi_by_default.cc), where the linker takes another definition than the weak one here.
EngineKind DefaultEngine();

/// Reads `key=value` arguments (others are left alone) and the environment. Throws Misuse that names the key,
/// the value and what was expected.
Settings ReadSettings(std::span<const std::string> arguments);

}  // namespace warren
