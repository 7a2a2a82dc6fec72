// A job as the page gets it: all of it as one JSON object, and then what has changed, so that a job of a
// thousand workers costs little while it is looked at. Pure.
//
//   {"job": {"name": "heart", "round": 12, ...},
//    "workers": [{"i": 0, "name": "worker 0", "state": "running", ...}, ...],
//    "evaluations": [[12, 3.4, {"train-rmse": 0.21}], ...],      round, seconds, metrics
//    "events": [[0.1, "info", "..."], ...]}                      seconds, severity, text
//
// A change has the same shape, of each only the members that differ: of workers those of the same "i", of
// evaluations those of rounds that are new or have changed, of events the new ones. Evaluations that were
// thinned out come whole, with "all_evaluations": true. Times are rounded to tenths of seconds, memory to
// whole MiB, so that what a reader could not see is not sent.
#pragma once

#include <string>

#include "submit/monitor/snapshot.h"

namespace warren::submit {

std::string PageState(const JobSnapshot& job);
/// What makes the state of `before` that of `now`; both have the same processes.
std::string PageChange(const JobSnapshot& before, const JobSnapshot& now);

}  // namespace warren::submit
