// A job's state for the page: first the whole job as one JSON object, then the changes, so that watching a
// job of a thousand workers costs little. Does no I/O.
//
//   {"job": {"name": "heart", "round": 12, ...},
//    "workers": [{"i": 0, "name": "worker 0", "state": "running", ...}, ...],
//    "evaluations": [[12, 3.4, {"train-rmse": 0.21}], ...],      round, seconds, metrics
//    "events": [[0.1, "info", "..."], ...]}                      seconds, severity, text
//
// A change has the same shape, with only the members that differ: workers by "i", evaluations of new or
// changed rounds, and new events. If evaluations were thinned out, all are sent, with "all_evaluations":
// true. Times are rounded to tenths of a second and memory to whole MiB, so that invisible changes are not
// sent.
#pragma once

#include <cstddef>
#include <string>

#include "submit/monitor/snapshot.h"

namespace warren::submit {

std::string PageState(const JobSnapshot& job);
/// The change from `before` to `now`; both have the same processes.
std::string PageChange(const JobSnapshot& before, const JobSnapshot& now);

/// {"evaluations": [[12, 3.4, {"train-rmse": 0.21}], ...]}: at most `most` rounds, including the last one.
std::string EvaluationsJson(const JobSnapshot& job, std::size_t most);

}  // namespace warren::submit
