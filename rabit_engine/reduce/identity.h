// The identity elements of the operations.
#pragma once

#include <cstddef>

#include "rabit_engine/reduce/reduction.h"

namespace warren {

/// Fills a buffer with elements e for which `e op x` and `x op e` are x, bit for bit. If x is a NaN, the
/// result may differ: it may be -infinity for max and infinity for min, and a signaling NaN may become quiet.
/// `buffer` need not be aligned. The operation must be defined for the type.
void FillWithIdentity(void* buffer, std::size_t count, DataType type, ReduceOp operation);

}  // namespace warren
