// The entry of --cluster kubernetes in the registry of clusters: its options, their checks, and the export
// with --kube-manifest.
#pragma once

#include "submit/cluster/cluster.h"

namespace warren::submit {

ClusterEntry KubernetesEntry();

}  // namespace warren::submit
