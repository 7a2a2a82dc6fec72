// The options --kube-worker-template, --kube-server-template and --kube-tracker-template: the user's
// manifests, merged over dmlc-submit's own.
#pragma once

#include <string>

#include "submit/cluster/kubernetes/yaml.h"

namespace warren::submit {

/// Merges the YAML file at `path` over `job`. The file may be a whole Job, a Pod, or the pod template of a
/// Job; a container in it without a name is merged over `container`. Throws UsageError if the file is
/// anything else or cannot be read.
void ApplyTemplate(Json& job, const std::string& path, const std::string& container);

/// Merges only the file's settings that a pod may need to be admitted to the cluster: image pull secrets,
/// service account and security context. Throws UsageError like ApplyTemplate.
void ApplyAdmission(Json& job, const std::string& path);

}  // namespace warren::submit
