// Parses numbers of the text formats, with exact rounding.
#pragma once

#include <cstdint>

namespace warren::data {

/// Parses a decimal floating-point number that fills [begin, end) completely: [+-] digits [. digits] [e [+-]
/// digits], where the digits before or after the dot may be missing; or inf, infinity, nan in any case. The
/// result has the same bits as strtof's: rounded to nearest, infinity if too large, zero if too small.
/// Returns false, and leaves `value` unchanged, for anything else.
bool ParseFloat(const char* begin, const char* end, float& value);

/// Parses a whole number without a sign that fills [begin, end). Returns false for anything else, or if it is
/// greater than `most`.
bool ParseUnsigned(const char* begin, const char* end, std::uint64_t most, std::uint64_t& value);

}  // namespace warren::data
