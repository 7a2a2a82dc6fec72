// Reads the relevant parts of the output of `kubectl get pods,jobs -o json`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "submit/process/process.h"

namespace warren::submit {

struct PodReport {
  std::string name;
  std::string role;  ///< "worker", ..., "tracker"
  std::size_t rank = 0;
  int replaced = 0;                 ///< number of earlier pods of this rank that failed or were disrupted
  bool has_begun = false;           ///< whether its container runs or has run, so that there is a log
  std::optional<ExitStatus> ended;  ///< how its container, or the whole pod, ended; nullopt if it has not
  std::string waits_for;            ///< why the pod waits: "ErrImagePull: ..."; empty if not worth reporting
  bool never_begins = false;        ///< whether waiting is useless
};

/// The role and rank of a process whose pods have failed so often that Kubernetes does not replace the last
/// one.
struct GivenUp {
  std::string role;
  std::size_t rank;
};

struct KubeReport {
  std::vector<PodReport> pods;
  std::vector<GivenUp> given_up;
  std::size_t jobs = 0;
  std::string failed_job;  ///< why a Job has failed: "DeadlineExceeded: ..."; empty if none has
};

/// Parses the output. Throws std::runtime_error if `json` is not a list of objects.
KubeReport ReadKubeReport(std::string_view json);

}  // namespace warren::submit
