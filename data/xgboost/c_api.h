// Helpers for XGBoost's C API: checked calls and array descriptions. Internal to data/xgboost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace warren::data::xgboost {

/// Throws DataError with XGBoost's message, without its stack trace, unless `return_code` is 0. `doing` is
/// the action in the message.
void Check(int return_code, std::string_view doing);

/// Describes an array as JSON in the form of NumPy's array interface: address, shape and type. With several
/// columns, it is a matrix in row-major order. The array must live until the call that receives the
/// description has returned.
std::string Describe(std::span<const float> array, std::size_t columns = 1);
std::string Describe(std::span<const std::uint32_t> array);
std::string Describe(std::span<const std::uint64_t> array);

/// Returns `text` as a JSON string.
std::string Quote(std::string_view text);

}  // namespace warren::data::xgboost
