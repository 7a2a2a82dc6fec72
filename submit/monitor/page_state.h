// The state of a job as JSON, for the page: the whole job at first, and then only the changes, so that
// watching a job of a thousand workers costs little. Does no I/O.
//
//   {"job": {"name": "heart", "round": 12, ...},
//    "workers": [{"i": 0, "name": "worker 0", "state": "running", ...}, ...],
//    "evaluations": [[12, 3.4, {"train-rmse": 0.21}], ...],      round, seconds, metrics
//    "events": [[0.1, "info", "..."], ...]}                      seconds, severity, text
//
// A change has the same shape, but contains only members that differ: workers by "i", evaluations of new or
// changed rounds, and new events. If rounds have disappeared, e.g. because evaluations were thinned out, all
// evaluations are sent, with "all_evaluations": true. Numbers are rounded, e.g. times to tenths of a second
// and memory to whole MiB, so that invisible changes are not sent.
#pragma once

#include <cstddef>
#include <string>

#include "submit/monitor/snapshot.h"

namespace warren::submit {

std::string PageState(const JobSnapshot& job);
/// The change from `before` to `now`, which must have the same processes.
std::string PageChange(const JobSnapshot& before, const JobSnapshot& now);

/// Returns {"evaluations": [[12, 3.4, {"train-rmse": 0.21}], ...]} with at most `most` rounds: the last one,
/// and earlier ones at equal distances.
std::string EvaluationsJson(const JobSnapshot& job, std::size_t most);

}  // namespace warren::submit
