// Files that can be read at any place: plain ones, and compressed ones made of blocks that stand alone. See
// stream.h for those that can be read from beginning to end only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "data/source/container.h"

namespace warren::data {

/// A file that can be read at any place, by several threads at once. Its size is that at opening: what is
/// added to it later is not seen.
class File {
 public:
  virtual ~File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::string& name() const { return name_; }
  /// Bytes of text: uncompressed.
  std::uint64_t size() const { return size_; }
  /// Reads exactly that many bytes. Throws DataError when the file has become shorter or does not hold what
  /// it says, naming file and offset; std::out_of_range when offset + bytes > size().
  virtual void ReadAt(std::uint64_t offset, char* to, std::size_t bytes) const = 0;

 protected:
  File(std::string name, std::uint64_t size);
  void RequireWithin(std::uint64_t offset, std::size_t bytes) const;

 private:
  std::string name_;
  std::uint64_t size_;
};

/// What a regular file is, by its content. Throws DataError when it cannot be opened or read, or is none.
Container Recognise(const std::string& path);
/// The same for one that is open, as it is stored: read at its first bytes, and at its last where it may be
/// zstd.
Container Recognise(const File& stored);

/// Opens a plain file, a BGZF file or a zstd file with a seek table. Of the compressed ones, opening reads
/// where the blocks or frames are, and checks that they fill the file to its end; that takes 24 bytes of
/// memory for a block, 32 for a frame. ReadAt checks the checksums of all BGZF blocks it touches, and those
/// of the zstd frames that were read to their end.
///
/// A block or frame in which a read ended is gone on with by the read that begins there, or behind it; so the
/// reads of a thread are best made in order. For that, and to serve several threads at once, up to 8
/// decompressors wait with what they need: 128 KiB for BGZF; for zstd the window, which is at most 128 MiB
/// but seldom more than 8.
///
/// Throws DataError: as Recognise; for other containers; when the file is damaged or was cut.
std::unique_ptr<File> OpenFile(const std::string& path, Container container);
/// The same over the bytes of a file that is open, as it is stored.
std::unique_ptr<File> OpenFile(std::unique_ptr<File> stored, Container container);

}  // namespace warren::data
