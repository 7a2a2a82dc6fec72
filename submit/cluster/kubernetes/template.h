// --kube-worker-template and its like: manifests of the user that are merged over ours.
#pragma once

#include <string>

#include "submit/cluster/kubernetes/yaml.h"

namespace warren::submit {

/// Merges the file, a whole Job, a Pod, or what a Job has as its template, over `job`. A container without a
/// name in it is the one called `container` here. Throws UsageError for what is none of these.
void ApplyTemplate(Json& job, const std::string& path, const std::string& container);

/// Of the file only what a pod needs to be let in at all: its secrets for images, its account and its
/// security context.
void ApplyAdmission(Json& job, const std::string& path);

}  // namespace warren::submit
