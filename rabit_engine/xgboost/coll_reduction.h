// XGBoost's element types and operations as the engine's reductions.
#pragma once

#include <optional>

#include "rabit_engine/reduce/reduction.h"

namespace warren::xgboost {

/// `type` and `operation` in XGBoost's codes (codes.h). 16-bit integers
/// and long double, which the engine has no kernels for, are custom functions. Nothing: XGBoost's own has to
/// say what it makes of them (half precision, which only its builds for GPUs know; bitwise operations on
/// floating point).
std::optional<Reduction> ReductionOf(int type, int operation);

}  // namespace warren::xgboost
