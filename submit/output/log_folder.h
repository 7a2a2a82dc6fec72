// The files that a job keeps in --log-dir: their names, and what happens to the files of an earlier job.
#pragma once

#include <string>
#include <string_view>

#include "posix/descriptor.h"

namespace warren::submit {

/// The output of dmlc-submit itself, with --detach.
inline constexpr std::string_view kLauncherLog = "launcher.log";
/// The text that workers print through the tracker, such as the evaluation of each round.
inline constexpr std::string_view kTrackerLog = "tracker.log";
/// The job's page, kept after its end.
inline constexpr std::string_view kKeptPage = "job.html";
/// The folder for the files of the previous job.
inline constexpr std::string_view kEarlierLogs = "earlier";

/// Whether a job keeps a file with this name: "worker-3.log", "server-0.stack", "scheduler.log", kTrackerLog,
/// kLauncherLog, kKeptPage.
bool IsLogName(std::string_view name);

/// Makes "rank-<rank>.log" a symbolic link to "worker-<task_id>.log" or, if the two numbers are equal,
/// removes an old link of this name. Call whenever a worker gets a rank. `task_id`: as reported by the
/// worker; anything but a number is ignored. Returns false if the link cannot be made or removed.
bool LinkRank(const std::string& folder, int rank, std::string_view task_id);

/// Creates `folder`, reserves it for this job until the returned descriptor is closed, and moves the previous
/// job's files to the subfolder kEarlierLogs, replacing older ones, so that no file of another job seems to
/// belong to this job. Moves only regular files whose names pass IsLogName, and the links made by LinkRank.
/// Logs one line if files were moved, and a warning instead if some cannot be moved. Throws
/// std::runtime_error if the folder cannot be created or another job has reserved it. On file systems that
/// cannot lock folders, such as NFS, another job is not detected.
[[nodiscard]] posix::Descriptor BeginLogFolder(const std::string& folder);

}  // namespace warren::submit
