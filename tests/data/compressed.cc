#include "tests/data/compressed.h"

#include <bzlib.h>
#include <lzma.h>
#include <xxhash.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <random>
#include <stdexcept>

namespace warren::data {
namespace {

std::string Deflate(std::string_view text, int window_bits) {
  z_stream zlib{};
  deflateInit2(&zlib, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&zlib, text.size()), '\0');
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  zlib.avail_in = static_cast<uInt>(text.size());
  zlib.next_out = reinterpret_cast<Bytef*>(out.data());
  zlib.avail_out = static_cast<uInt>(out.size());
  const int result = deflate(&zlib, Z_FINISH);
  out.resize(zlib.total_out);
  deflateEnd(&zlib);
  if (result != Z_STREAM_END) throw std::runtime_error("deflate failed");
  return out;
}

std::string ZstdFrame(std::string_view text, bool has_checksum) {
  ZSTD_CCtx* const zstd = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, has_checksum ? 1 : 0);
  std::string out(ZSTD_compressBound(text.size()), '\0');
  const std::size_t bytes = ZSTD_compress2(zstd, out.data(), out.size(), text.data(), text.size());
  ZSTD_freeCCtx(zstd);
  if (ZSTD_isError(bytes) != 0) throw std::runtime_error("zstd failed");
  out.resize(bytes);
  return out;
}

}  // namespace

std::string SomeText(std::size_t bytes, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::string text;
  while (text.size() < bytes) {
    text += std::to_string(random() % 2) + ' ' + std::to_string(random() % 1000) + ":0." +
            std::to_string(random() % 100);
    text += random() % 4 == 0 ? '\n' : ' ';
  }
  text.resize(bytes);
  return text;
}

std::string Flipped(std::string bytes, std::size_t bit) {
  bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
  return bytes;
}

std::string RandomBytes(std::size_t bytes) {
  std::mt19937 random(1);
  std::string out(bytes, '\0');
  for (char& byte : out) byte = static_cast<char>(random());
  return out;
}

std::string Gzip(std::string_view text) {
  return Deflate(text, MAX_WBITS + 16);
}

std::string Bzip2(std::string_view text) {
  std::string out(text.size() + text.size() / 100 + 601, '\0');
  auto bytes = static_cast<unsigned>(out.size());
  if (text.data() == nullptr) text = "";  // bzip2 does not accept a null pointer
  const int result = BZ2_bzBuffToBuffCompress(out.data(), &bytes, const_cast<char*>(text.data()),
                                              static_cast<unsigned>(text.size()), 1, 0, 0);
  if (result != BZ_OK) throw std::runtime_error("bzip2 failed");
  out.resize(bytes);
  return out;
}

std::string Xz(std::string_view text) {
  std::string out(lzma_stream_buffer_bound(text.size()), '\0');
  std::size_t bytes = 0;
  const lzma_ret result = lzma_easy_buffer_encode(
      1, LZMA_CHECK_CRC32, nullptr, reinterpret_cast<const std::uint8_t*>(text.data()), text.size(),
      reinterpret_cast<std::uint8_t*>(out.data()), &bytes, out.size());
  if (result != LZMA_OK) throw std::runtime_error("xz failed");
  out.resize(bytes);
  return out;
}

std::string Lzma(std::string_view text) {
  lzma_options_lzma options{};
  lzma_lzma_preset(&options, 1);
  lzma_stream lzma = LZMA_STREAM_INIT;
  std::string out(text.size() * 2 + 1000, '\0');
  lzma_ret result = lzma_alone_encoder(&lzma, &options);
  lzma.next_in = reinterpret_cast<const std::uint8_t*>(text.data());
  lzma.avail_in = text.size();
  lzma.next_out = reinterpret_cast<std::uint8_t*>(out.data());
  lzma.avail_out = out.size();
  if (result == LZMA_OK) result = lzma_code(&lzma, LZMA_FINISH);
  out.resize(out.size() - lzma.avail_out);
  lzma_end(&lzma);
  if (result != LZMA_STREAM_END) throw std::runtime_error("lzma failed");
  return out;
}

std::string Zstd(std::string_view text) {
  return ZstdFrame(text, true);
}

std::string BgzfBlock(std::string_view text, std::string_view before, std::string_view behind) {
  const std::string deflated = Deflate(text, -MAX_WBITS);
  const std::size_t extra = before.size() + 6 + behind.size();
  const std::size_t block = 12 + extra + deflated.size() + 8;
  std::string out("\x1F\x8B\x08\x04\0\0\0\0\0\xFF", 10);
  out += LittleEndian(extra, 2);
  out += before;
  out += std::string("BC\x02\0", 4) + LittleEndian(block - 1, 2);
  out += behind;
  out += deflated;
  out +=
      LittleEndian(crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size())), 4);
  return out + LittleEndian(text.size(), 4);
}

std::string Bgzf(std::string_view text, std::size_t block_bytes) {
  std::string out;
  for (; !text.empty(); text.remove_prefix(std::min(block_bytes, text.size()))) {
    out += BgzfBlock(text.substr(0, block_bytes));
  }
  return out + BgzfBlock({});
}

void SeekTableWriter::Add(std::uint32_t compressed_bytes, std::uint32_t text_bytes, std::uint32_t checksum) {
  entries_ += LittleEndian(compressed_bytes, 4) + LittleEndian(text_bytes, 4);
  if (has_checksums_) entries_ += LittleEndian(checksum, 4);
  ++frames_;
}

std::string SeekTableWriter::Table() const {
  return LittleEndian(0x184D2A5E, 4) + LittleEndian(entries_.size() + 9, 4) + entries_ +
         LittleEndian(frames_, 4) + LittleEndian(has_checksums_ ? 0x80 : 0, 1) + LittleEndian(0x8F92EAB1, 4);
}

std::string ZstdSeekable(std::string_view text, std::size_t frame_bytes, Checksums checksums) {
  SeekTableWriter table(checksums == Checksums::kInTable);
  std::string out;
  for (; !text.empty(); text.remove_prefix(std::min(frame_bytes, text.size()))) {
    const std::string_view part = text.substr(0, frame_bytes);
    const std::string frame = ZstdFrame(part, checksums == Checksums::kInFrames);
    table.Add(static_cast<std::uint32_t>(frame.size()), static_cast<std::uint32_t>(part.size()),
              static_cast<std::uint32_t>(XXH64(part.data(), part.size(), 0)));
    out += frame;
  }
  return out + table.Table();
}

std::string LittleEndian(std::uint64_t value, std::size_t bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

}  // namespace warren::data
