// What the C API of XGBoost is spoken with: checked calls, arrays described. Inside of data/xgboost only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace warren::data::xgboost {

/// Throws DataError with XGBoost's message, without its stack trace, when a call has returned non-zero.
void Check(int return_code, std::string_view doing);

/// The array interface that NumPy has made common: where an array is, and how it looks. With several columns
/// it is a matrix, row by row. The array must live until the call that gets this has returned.
std::string Describe(std::span<const float> array, std::size_t columns = 1);
std::string Describe(std::span<const std::uint32_t> array);
std::string Describe(std::span<const std::uint64_t> array);

/// As a string of JSON.
std::string Quote(std::string_view text);

}  // namespace warren::data::xgboost
