// Files that can be read at any position: plain files, and compressed files of independent blocks. See
// stream.h for files that can only be read sequentially.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "data/source/container.h"

namespace warren::data {

/// A file that can be read at any position, by several threads concurrently. Its size is fixed at opening:
/// later additions are not seen.
class File {
 public:
  virtual ~File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::string& name() const { return name_; }
  /// The number of bytes that can be read. For a compressed file, this is the size of the uncompressed text
  /// if OpenFile has returned this object, otherwise the stored size.
  std::uint64_t size() const { return size_; }
  /// Reads exactly `bytes` bytes. Throws DataError, naming file and offset, if the file cannot be read, has
  /// become shorter or is damaged; std::out_of_range if offset + bytes > size().
  virtual void ReadAt(std::uint64_t offset, char* to, std::size_t bytes) const = 0;

 protected:
  File(std::string name, std::uint64_t size);
  void RequireWithin(std::uint64_t offset, std::size_t bytes) const;

 private:
  std::string name_;
  std::uint64_t size_;
};

/// Recognizes a regular file by its content. Throws DataError if it is not a regular file, cannot be read, or
/// is Parquet or Arrow.
Container Recognise(const std::string& path);
/// Recognizes an open file by its stored bytes; reads its first bytes and, if it is zstd, looks for a seek
/// table at its end. Throws DataError if the file cannot be read, or is Parquet or Arrow.
Container Recognise(const File& stored);

/// Opens a plain file, a BGZF file or a zstd file with a seek table. For compressed files, this reads the
/// positions of the blocks or frames, which take 24 bytes of memory per block or 32 per frame, and checks
/// that they fill the file to its end. ReadAt verifies the checksums of all BGZF blocks it touches, and the
/// checksums of zstd frames, if the file has them, at the end of each frame.
///
/// A read that begins where the previous read of the same block or frame ended, or later in it, continues
/// from there, so each thread should read in order. For this, and to serve several threads concurrently, each
/// file keeps up to 8 idle decompressors. Each of them takes about 128 KiB of memory for BGZF; for zstd
/// mostly the window, at most 128 MiB but rarely more than 8.
///
/// Throws DataError like Recognise, for any other container, and if the file is damaged or truncated.
std::unique_ptr<File> OpenFile(const std::string& path, Container container);
/// Like OpenFile with a path, for an open file of stored bytes.
std::unique_ptr<File> OpenFile(std::unique_ptr<File> stored, Container container);

}  // namespace warren::data
