// Cache files: a file is refused, or its pages are consistent, or an error names the file. Checksums catch
// most random changes, so in effect this fuzzes only the bytes that no checksum covers.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "data/cache/cache.h"
#include "data/error.h"
#include "tests/memory_file.h"

namespace {

using namespace warren::data;

template <typename Index>
void Read(const std::string& path) {
  std::string why;
  const auto cache = Cache<Index>::Open(path, "fuzz", why);
  if (!cache) {
    if (why.empty()) std::abort();
    return;
  }
  for (std::size_t i = 0; i < cache->pages(); ++i) {
    const auto page = cache->Page(i);
    const RowView<Index>& view = page.View();
    if (view.offsets.back() != view.entries()) std::abort();
    for (const Index index : view.indices) {
      if (index >= view.columns) std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const warren::MemoryFile file({reinterpret_cast<const char*>(data), size});
  try {
    Read<std::uint32_t>(file.path());
    Read<std::uint64_t>(file.path());
  } catch (const DataError& error) {
    if (!std::string_view(error.what()).starts_with(file.path())) std::abort();
  }
  return 0;
}
