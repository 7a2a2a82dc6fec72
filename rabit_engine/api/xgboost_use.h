// Whether XGBoost communicates over librabit_xgboost, which somebody has linked or preloaded for it.
#pragma once

namespace warren::api {

/// XGBoost's communication came here: it is served, or its user has been told why not. Where it never comes,
/// the end of the process says so, in a job that has loaded an XGBoost. Thread safe.
void NoteXgboostsUse();

}  // namespace warren::api
