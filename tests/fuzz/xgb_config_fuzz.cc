// xgb-train's configuration text: the result is settings or a ConfigError that names the file.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "examples/xgboost/xgb_train/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    for (const auto& setting : warren::xgb_train::ParseConfig(text, "fuzz.conf")) {
      if (setting.key.empty() || !setting.origin.starts_with("fuzz.conf:")) std::abort();
    }
  } catch (const warren::xgb_train::ConfigError& error) {
    if (!std::string_view(error.what()).starts_with("fuzz.conf:")) std::abort();
  }
  return 0;
}
