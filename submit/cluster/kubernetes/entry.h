// --cluster kubernetes in the registry of clusters: its options, what is checked of them, and
// --kube-manifest.
#pragma once

#include "submit/cluster/cluster.h"

namespace warren::submit {

ClusterEntry KubernetesEntry();

}  // namespace warren::submit
