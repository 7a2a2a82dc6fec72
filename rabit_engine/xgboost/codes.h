// XGBoost's codes for element types and operations, as used by its C API and its class Coll:
// ArrayInterfaceHandler::Type (src/data/array_interface.h) and collective::Op (src/collective/comm.h).
#pragma once

namespace warren::xgboost {

enum Type : int { kF2, kF4, kF8, kF16, kI1, kI2, kI4, kI8, kU1, kU2, kU4, kU8 };
enum Op : int { kMax, kMin, kSum, kBitwiseAnd, kBitwiseOr, kBitwiseXor };

}  // namespace warren::xgboost
