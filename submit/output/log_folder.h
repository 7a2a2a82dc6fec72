// The files that a job keeps in --log-dir, and what becomes of those of the job before.
#pragma once

#include <string>
#include <string_view>

#include "posix/descriptor.h"

namespace warren::submit {

/// What workers print by way of the tracker, such as the evaluation of each round.
inline constexpr std::string_view kTrackerLog = "tracker.log";
/// The job's page after its end.
inline constexpr std::string_view kKeptPage = "job.html";
/// Where the files of the job before are put.
inline constexpr std::string_view kEarlierLogs = "earlier";

/// Whether a job keeps a file of this name: "worker-3.log", "server-0.stack", "scheduler.log", kTrackerLog,
/// kKeptPage.
bool IsLogName(std::string_view name);

/// Makes `folder`, takes it for this job until the descriptor that it returns is closed, and moves the files
/// of the job before that are in it to its folder kEarlierLogs, in place of those of the job before that one,
/// so that nothing of another job seems to be this one's. Files with other names, and whatever is no regular
/// file, stay. Says in one line that it moved some, and warns of those that it cannot move. Throws
/// std::runtime_error if the folder cannot be made, or if another job has taken it. Where the file system has
/// no locks for folders, as NFS, another job is not noticed.
[[nodiscard]] posix::Descriptor BeginLogFolder(const std::string& folder);

}  // namespace warren::submit
