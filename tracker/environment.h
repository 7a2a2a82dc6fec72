// The environment variables of a job's processes: the address of the tracker, the job's size and token, and
// the role of each process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wire/job_token.h"

namespace warren::tracker {

/// Names and values in display order. Names are unique.
using Environment = std::vector<std::pair<std::string, std::string>>;

enum class Role { kScheduler, kServer, kWorker };
/// The value of DMLC_ROLE: "scheduler", "server" or "worker".
std::string RoleName(Role role);

/// Settings shared by all processes of a job.
struct JobAddress {
  std::string tracker_host;  ///< address or name that workers can reach; empty: no rabit tracker
  std::uint16_t tracker_port = 0;
  int num_workers = 0;
  int num_servers = 0;
  std::string ps_root_host;  ///< parameter-server jobs only
  std::uint16_t ps_root_port = 0;
  std::string token = {};  ///< the job's token, as JobToken::ToHex; empty: none
  bool tls = false;        ///< whether connections are encrypted, with the token as the key
  /// Set in an elastic job: the job continues while at least this many workers are left.
  std::optional<int> min_workers = {};
};

/// Settings that differ between the processes of a job.
struct TaskIdentity {
  Role role = Role::kWorker;
  int task_id = 0;      ///< 0-based within the role
  int num_attempt = 0;  ///< 0 at the first start
  std::string cluster;  ///< "local", "ssh", ...
};

/// DMLC_NUM_WORKER, DMLC_NUM_SERVER, and, if they apply, DMLC_TRACKER_URI and _PORT, DMLC_JOB_TOKEN,
/// WARREN_TLS (also under its former name), WARREN_ELASTIC, DMLC_PS_ROOT_URI and _PORT.
Environment JobEnvironment(const JobAddress& address);
/// JobEnvironment plus DMLC_ROLE, DMLC_TASK_ID, DMLC_NUM_ATTEMPT, DMLC_JOB_CLUSTER.
Environment TaskEnvironment(const JobAddress& address, const TaskIdentity& task);

/// The token in DMLC_JOB_TOKEN, the variable with which the process that starts a tracker can choose the
/// job's token; std::nullopt if it is unset or empty. Throws std::runtime_error if it is malformed.
std::optional<wire::JobToken> TokenFromEnvironment();

}  // namespace warren::tracker
