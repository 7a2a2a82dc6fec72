// --kube-worker-template and the like: the user's manifests, merged over dmlc-submit's own.
#pragma once

#include <string>

#include "submit/cluster/kubernetes/yaml.h"

namespace warren::submit {

/// Merges the file over `job`. The file may be a whole Job, a Pod, or the pod template of a Job; a container
/// in it without a name is merged over `container`. Throws UsageError for anything else.
void ApplyTemplate(Json& job, const std::string& path, const std::string& container);

/// Merges only the settings that a pod needs to be admitted: image pull secrets, service account and security
/// context.
void ApplyAdmission(Json& job, const std::string& path);

}  // namespace warren::submit
