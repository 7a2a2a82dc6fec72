// The element that changes nothing.
#pragma once

#include <cstddef>

#include "rabit_engine/reduce/reduction.h"

namespace warren {

/// Fills a buffer with elements e for which the operation of e and x is x, bit for bit, and of x and e too;
/// but for NaN under max and min, where it may be -infinity or infinity instead. `buffer` need not be
/// aligned. The operation has to exist for the type.
void FillWithIdentity(void* buffer, std::size_t count, DataType type, Operation operation);

}  // namespace warren
