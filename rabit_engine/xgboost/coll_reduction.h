// XGBoost's element types and operations as the engine's reductions.
#pragma once

#include <optional>

#include "rabit_engine/reduce/reduction.h"

namespace warren::xgboost {

/// Returns the reduction for `type` and `operation` in XGBoost's codes (codes.h). 16-bit integers and long
/// double, for which the engine has no kernels, use custom functions. Returns nullopt if XGBoost itself must
/// run the call: for half precision, which only its GPU builds support, bitwise operations on floating point,
/// and unknown codes.
std::optional<Reduction> ReductionOf(int type, int operation);

}  // namespace warren::xgboost
