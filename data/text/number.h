// Numbers as the text formats write them, exactly rounded.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warren::data {

/// Reads a decimal floating-point number that fills [begin, end) wholly: [+-] digits [. digits] [e [+-]
/// digits], or inf, infinity, nan in any case. The result has the bits that strtof gives: round to nearest,
/// infinity when too large, zero when too small. Returns false, and leaves `value`, for anything else.
bool ParseFloat(const char* begin, const char* end, float& value);

/// Reads a whole number without sign that fills [begin, end). Returns false for anything else, and when it is
/// greater than `most`.
bool ParseUnsigned(const char* begin, const char* end, std::uint64_t most, std::uint64_t& value);

}  // namespace warren::data
