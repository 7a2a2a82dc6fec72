// Processes of a job that have left their original process group, as `timeout`, shells with job control and
// daemons do. Signals to the group do not reach them. They are found through Linux's /proc; on other systems
// they are not found.
#pragma once

#include <sys/types.h>

#include <set>
#include <vector>

namespace warren::submit {

/// The adopted orphans: children of this process that are not in `known`. On Linux, a process adopts its
/// orphaned descendants, whatever group or session they are in, after posix::BecomeSubreaper. Orphans that
/// have exited are reaped and not listed. Empty if the kernel does not list children (CONFIG_PROC_CHILDREN).
std::vector<pid_t> AdoptedOrphans(const std::set<pid_t>& known);

/// Kills adopted orphans until none is left, for at most a second.
void EndOrphans(const std::set<pid_t>& known);

/// The processes whose session is in `sessions`, but whose process group is not.
std::vector<pid_t> EscapedFromGroups(const std::set<pid_t>& sessions);

}  // namespace warren::submit
