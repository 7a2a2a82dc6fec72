// Reads the files that dmlc-submit writes about jobs to the history folder (history.h), for the page of
// another job of the same user.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace warren::submit {

/// Returns the newest records, newest first; at most `most` of them, and about 8 MiB in total:
///   [{"id": "20261127T010203Z-4242", "held": true, "curves": false, "record": "{\"format\": 1, ...}"}, ...]
/// "held": whether a process, normally the job's dmlc-submit, holds the lock on the record; null if the file
/// system does not support locks. "curves": whether there is a file of evaluations. "record": the text of the
/// file. The list is empty if the folder cannot be read.
std::string RecordedJobsJson(const std::string& folder, std::size_t most);

/// The text that History::KeepEvaluations has written for a job; nullopt if it cannot be read or `id` is not
/// a job's ID.
std::optional<std::string> RecordedEvaluations(const std::string& folder, std::string_view id);

/// The page that was kept of an ended job (kept_page.h); nullopt if none exists or it cannot be read.
std::optional<std::string> RecordedPage(const std::string& folder, std::string_view id);

}  // namespace warren::submit
