// Bytes that come one after the other: files, pipes, devices and standard input, decompressed on the way.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace warren::data {

class File;

/// Not thread safe.
class Stream {
 public:
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  const std::string& name() const { return name_; }
  /// Up to `bytes` bytes of text, as soon as there are some; 0 at the end only (and for `bytes` = 0). Throws
  /// DataError when the file cannot be read, is damaged, was cut off or has something else behind its end;
  /// the message names the file, what it is compressed with and the place in the compressed bytes, counted
  /// from 0. No use after that.
  virtual std::size_t Read(char* to, std::size_t bytes) = 0;

 protected:
  explicit Stream(std::string name) : name_(std::move(name)) {}

 private:
  std::string name_;
};

/// Opens a plain, gzip, zstd, bzip2, xz or .lzma file; which of them, its first bytes say. They may be
/// several, one after the other: gzip members (zeros may follow), zstd frames, bzip2 and xz streams. "-" is
/// standard input.
///
/// Waits for the first bytes. A file that ends within the bytes that would tell is plain; BGZF without its
/// end mark was cut off. Decompression takes at most 128 MiB for zstd and 1 GiB for xz; what would need more
/// is a DataError.
std::unique_ptr<Stream> OpenStream(const std::string& path);
/// The same over the bytes of a file that is open, as it is stored; they are read in order, in pieces of
/// 256 KiB or more.
std::unique_ptr<Stream> OpenStream(std::unique_ptr<File> stored);

}  // namespace warren::data
