// Compressed files: a file is read, or an error names it. The text at any position is the same as when read
// from the beginning. Memory stays within the fuzzer's limit.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "data/error.h"
#include "data/source/file.h"
#include "data/source/stream.h"
#include "tests/memory_file.h"

namespace {

using namespace warren::data;

/// At most this many bytes of text are read, since a few bytes can expand to very many.
constexpr std::size_t kMost = std::size_t{1} << 20;

void RequireNamed(const DataError& error, const std::string& path) {
  if (!std::string_view(error.what()).starts_with(path)) std::abort();
}

/// The beginning of the text, or nullopt on an error.
std::optional<std::string> ReadStream(const std::string& path) {
  try {
    const auto stream = OpenStream(path);
    std::string text;
    char part[4000];
    for (std::size_t got = 1; got > 0 && text.size() < kMost; text.append(part, got)) {
      got = stream->Read(part, std::min(kMost - text.size(), sizeof(part)));
    }
    return text;
  } catch (const DataError& error) {
    RequireNamed(error, path);
    return std::nullopt;
  }
}

std::optional<std::string> ReadFile(const std::string& path) {
  try {
    const auto file = OpenFile(path, Recognise(path));
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(file->size(), kMost));
    std::string text(size, '\0');
    for (std::size_t at = 0; at < size; at += 3000) {
      file->ReadAt(at, text.data() + at, std::min<std::size_t>(size - at, 3000));
    }
    return text;
  } catch (const DataError& error) {
    RequireNamed(error, path);
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const warren::MemoryFile file({reinterpret_cast<const char*>(data), size});
  const auto streamed = ReadStream(file.path());
  const auto read = ReadFile(file.path());
  if (streamed && read && *streamed != *read) std::abort();
  return 0;
}
