#include "data/source/container.h"

#include <array>
#include <bit>

#include "data/source/little_endian.h"

namespace warren::data {

std::string_view NameOf(Container container) {
  static constexpr std::array<std::string_view, 7> kNames = {"plain",         "gzip",  "BGZF", "zstd",
                                                             "zstd seekable", "bzip2", "xz"};
  return kNames[static_cast<std::size_t>(container)];
}

namespace internal {
namespace {

using namespace std::string_view_literals;

/// Whether a file begins with a zstd data frame, or with a skippable frame, as files written by pzstd do. RFC
/// 8878, sections 3.1.1 and 3.1.2.
bool IsZstd(std::string_view first) {
  if (first.size() < 4) return false;
  const auto magic = LoadLittleEndian<std::uint32_t>(first.data());
  return magic == 0xFD2FB528 || (magic & 0xFFFFFFF0) == 0x184D2A50;
}

/// Plain text may begin with "BZh1", so this also requires the beginning of a block or of the end marker.
bool IsBzip2(std::string_view first) {
  if (first.size() < 10 || !first.starts_with("BZh"sv) || first[3] < '1' || first[3] > '9') return false;
  const std::string_view block = first.substr(4, 6);
  return block == "\x31\x41\x59\x26\x53\x59"sv || block == "\x17\x72\x45\x38\x50\x90"sv;
}

}  // namespace

std::string_view FormatWithColumns(std::string_view first_bytes) {
  if (first_bytes.starts_with("PAR1"sv)) return "Parquet";
  if (first_bytes.starts_with("ARROW1\0\0"sv)) return "Arrow";
  return {};
}

Container RecogniseStart(std::string_view first_bytes) {
  if (first_bytes.starts_with("\x1F\x8B"sv)) return Container::kGzip;
  if (IsZstd(first_bytes)) return Container::kZstd;
  if (IsBzip2(first_bytes)) return Container::kBzip2;
  if (first_bytes.starts_with("\xFD\x37zXZ\0"sv) || IsLzma(first_bytes)) return Container::kXz;
  return Container::kPlain;
}

/// .lzma has no magic number. Its header has 13 bytes: the properties, nearly always 0x5D; the dictionary
/// size, which encoders make 2^n or 3 * 2^n; the text size, or all ones. Text cannot look like this, since
/// some of these bytes are zero or have the highest bit set.
bool IsLzma(std::string_view first_bytes) {
  if (first_bytes.size() < 13 || first_bytes[0] != '\x5D') return false;
  const auto dictionary = LoadLittleEndian<std::uint32_t>(&first_bytes[1]);
  const auto text = LoadLittleEndian<std::uint64_t>(&first_bytes[5]);
  const bool usual_dictionary = dictionary == 0xFFFFFFFF || std::has_single_bit(dictionary) ||
                                (dictionary % 3 == 0 && std::has_single_bit(dictionary / 3));
  constexpr std::uint64_t kImplausible = std::uint64_t{1} << 38;
  return usual_dictionary && (text == ~std::uint64_t{0} || text < kImplausible);
}

}  // namespace internal
}  // namespace warren::data
