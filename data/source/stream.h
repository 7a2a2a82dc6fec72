// Reads files, pipes, devices and standard input from beginning to end, and decompresses them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace warren::data {

class File;

/// The text of a file from its beginning to its end. Not thread-safe.
class Stream {
 public:
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  const std::string& name() const { return name_; }
  /// Reads up to `bytes` bytes of text, as soon as some are available; returns 0 only at the end (and for
  /// `bytes` = 0). Throws DataError if the file cannot be read, is damaged or truncated, or has unexpected
  /// data after its end; the message names the file, its compression and the zero-based position in the
  /// compressed bytes. The stream cannot be used after that.
  virtual std::size_t Read(char* to, std::size_t bytes) = 0;

 protected:
  explicit Stream(std::string name) : name_(std::move(name)) {}

 private:
  std::string name_;
};

/// Opens a plain, gzip, zstd, bzip2, xz or .lzma file, recognized by its first bytes. It may have several
/// parts, one after the other: gzip members (zeros may follow), zstd frames, bzip2 and xz streams. "-" is
/// standard input.
///
/// Waits for the first bytes. A file too short to be recognized is plain; a BGZF file without its end mark is
/// an error. Decompression takes at most 128 MiB of memory for the window of zstd, and 1 GiB for xz. Read
/// throws DataError for a file that needs more.
std::unique_ptr<Stream> OpenStream(const std::string& path);
/// Like OpenStream(path), for an open file of stored bytes. If they are compressed, they are read in pieces
/// of 256 KiB.
std::unique_ptr<Stream> OpenStream(std::unique_ptr<File> stored);

}  // namespace warren::data
