// Reads the files of dmlc-submit's jobs in the history folder (history.h), for the page of another job of the
// same user.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace warren::submit {

/// The newest records, newest first; at most `most` of them, and at most 8 MiB in total:
///   [{"id": "20261127T010203Z-4242", "held": true, "curves": false, "record": "{\"format\": 1, ...}"}, ...]
/// "held": whether the job's dmlc-submit holds the lock on its record; null if the file system does not
/// support locks. "curves": whether evaluations are kept. "record": the text of the file. Empty list if the
/// folder cannot be read.
std::string RecordedJobsJson(const std::string& folder, std::size_t most);

/// The text that History::KeepEvaluations has written for a job; nullopt if there is none or `id` is not an
/// ID.
std::optional<std::string> RecordedEvaluations(const std::string& folder, std::string_view id);

/// The page of an ended job (kept_page.h); nullopt if it was not kept or cannot be read.
std::optional<std::string> RecordedPage(const std::string& folder, std::string_view id);

}  // namespace warren::submit
