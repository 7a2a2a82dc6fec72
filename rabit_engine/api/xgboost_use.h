// A warning for programs that have linked or preloaded librabit_xgboost, but whose XGBoost does not
// communicate over it.
#pragma once

namespace warren::api {

/// Records that XGBoost's communication has reached this library, which either serves it or reports to the
/// user why it does not. If this function is never called, a process that belongs to a job and has loaded
/// XGBoost prints a warning when it ends. Thread-safe.
void NoteXgboostsUse();

}  // namespace warren::api
