// A warning for programs that have linked or preloaded librabit_xgboost, but whose XGBoost does not
// communicate over it.
#pragma once

namespace warren::api {

/// Notes that XGBoost's communication has reached this library, which serves it or tells the user why not. If
/// that never happens, a process that belongs to a job and has loaded XGBoost prints a warning when it ends.
/// Thread-safe.
void NoteXgboostsUse();

}  // namespace warren::api
