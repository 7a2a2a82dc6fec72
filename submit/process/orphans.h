// Processes of a job that have left the process group they were started in: `timeout`, shells with job
// control and daemons do that. Signals to the group pass them by. They are found by what Linux tells in
// /proc; on other systems they stay.
#pragma once

#include <sys/types.h>

#include <set>
#include <vector>

namespace warren::submit {

/// From now on descendants whose parent ends become children of this process (Linux: child subreaper), so
/// that they can be found and ended, whatever group or session they are in.
void BecomeSubreaper();

/// Children of this process that are not `known`: orphans it has adopted. Those that have ended are reaped
/// and not listed. Empty where the kernel does not list children (CONFIG_PROC_CHILDREN).
std::vector<pid_t> AdoptedOrphans(const std::set<pid_t>& known);

/// Ends adopted orphans until none is left, or for as long as that may take at most.
void EndOrphans(const std::set<pid_t>& known);

/// Processes whose session is one of `sessions` but whose process group is not.
std::vector<pid_t> EscapedFromGroups(const std::set<pid_t>& sessions);

}  // namespace warren::submit
