#include "data/xgboost/c_api.h"

#include <fmt/format.h>
#include <xgboost/c_api.h>

#include <algorithm>

#include "data/error.h"

namespace warren::data::xgboost {
namespace {

template <typename T>
std::string DescribeArray(std::span<const T> array, std::size_t columns, std::string_view type) {
  // Even an empty array needs a non-null address.
  static constexpr T kNothing{};
  const T* const place = array.empty() ? &kNothing : array.data();
  const std::string shape =
      columns <= 1 ? fmt::format("{}", array.size()) : fmt::format("{},{}", array.size() / columns, columns);
  return fmt::format(R"({{"data":[{},true],"shape":[{}],"typestr":"{}","version":3}})",
                     reinterpret_cast<std::uintptr_t>(place), shape, type);
}

}  // namespace

void Check(int return_code, std::string_view doing) {
  if (return_code == 0) return;
  std::string message = XGBGetLastError();
  message.resize(std::min(message.find("Stack trace"), message.size()));
  while (!message.empty() && message.back() == '\n') message.pop_back();
  throw DataError(fmt::format("XGBoost, {}: {}", doing, message));
}

std::string Describe(std::span<const float> array, std::size_t columns) {
  return DescribeArray(array, columns, "<f4");
}
std::string Describe(std::span<const std::uint32_t> array) {
  return DescribeArray(array, 1, "<u4");
}
std::string Describe(std::span<const std::uint64_t> array) {
  return DescribeArray(array, 1, "<u8");
}

std::string Quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) {
      quoted += fmt::format("\\u{:04x}", static_cast<int>(c));
      continue;
    }
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace warren::data::xgboost
