// What `kubectl get pods,jobs -o json` says, as far as it matters here.
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
  int replaced = 0;                 ///< how many pods of its rank Kubernetes has counted as failed before it
  bool has_begun = false;           ///< its container runs or has run: there is a log
  std::optional<ExitStatus> ended;  ///< how its container, or the whole pod, ended
  std::string waits_for;      ///< "ErrImagePull: ...", "Unschedulable: ..."; empty: nothing worth telling
  bool never_begins = false;  ///< and there is no use in waiting at all
};

struct KubeReport {
  std::vector<PodReport> pods;
  std::size_t jobs = 0;
  std::string failed_job;  ///< "DeadlineExceeded: ..." of a Job that Kubernetes has given up; empty: none
};

/// Throws std::runtime_error for what kubectl does not print.
KubeReport ReadKubeReport(std::string_view json);

}  // namespace warren::submit
