// URIs of data sets: a URI is understood, or an error quotes it.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "data/error.h"
#include "data/uri.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace warren::data;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const DataUri uri = ParseDataUri(text);
    if (uri.paths.empty()) std::abort();
    for (const std::string& path : uri.paths) {
      if (path.empty() || path.find(';') != std::string::npos) std::abort();
    }
    const auto share = uri.options.share;
    if (share && (share->index < 0 || share->index >= share->count)) std::abort();
    RequireValid(uri.options.csv);
  } catch (const DataError& error) {
    if (!std::string_view(error.what()).starts_with("'")) std::abort();
  }
  return 0;
}
