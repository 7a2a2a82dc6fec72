// --cluster ssh: starts each process with its own OpenSSH client on a host of the host file.
//
// The user's ssh configuration applies (keys, ports, jump hosts, connections that are already shared). The
// script that contains the command and its environment is passed to a remote `sh` through standard input, so
// that process lists do not show the script. The controller (ssh_controller.h) makes the decisions; this file
// runs ssh and rsync.
#pragma once

#include "submit/cluster/cluster.h"

namespace warren::submit {

/// The cluster's row in the registry.
ClusterEntry SshEntry();

}  // namespace warren::submit
