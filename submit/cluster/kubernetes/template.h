// --kube-worker-template and the like: manifests of the user, merged over ours.
#pragma once

#include <string>

#include "submit/cluster/kubernetes/yaml.h"

namespace warren::submit {

/// Merges the file over `job`. It may be a whole Job, a Pod, or the pod template of a Job; a container in it
/// that has no name is taken for the one called `container`. Throws UsageError for anything else.
void ApplyTemplate(Json& job, const std::string& path, const std::string& container);

/// Merges only what a pod needs to be admitted at all: its image secrets, account and security context.
void ApplyAdmission(Json& job, const std::string& path);

}  // namespace warren::submit
