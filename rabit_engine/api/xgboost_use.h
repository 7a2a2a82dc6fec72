// Whether XGBoost communicates over librabit_xgboost, which a program has linked or preloaded for it.
#pragma once

namespace warren::api {

/// Notes that XGBoost's communication has reached this library: it is served, or the user has been told why
/// not. If that never happens, a process of a job that has loaded XGBoost prints a warning when it ends.
/// Thread-safe.
void NoteXgboostsUse();

}  // namespace warren::api
