// Splits a part of a data set into chunks of whole rows. Internal to data/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/array.h"
#include "data/error.h"
#include "data/share.h"
#include "data/source/file.h"
#include "data/source/inputs.h"
#include "data/source/row_range.h"
#include "data/source/row_rules.h"
#include "data/source/shard.h"
#include "data/source/stream.h"

namespace warren::data {

/// A piece of text that is read from an input and then parsed.
struct Chunk {
  std::uint64_t number = 0;  ///< zero-based position within the part
  Range range;
  Text text;
  /// For a stream, the number of the text's first line; 0 if it must be counted in the file.
  std::uint64_t first_line = 0;
  bool after_cr = false;  ///< for a stream, whether the byte before the text is a CR
  Array<char> buffer;     ///< holds the text
};

/// The part of the inputs to read, and how to split it into chunks.
struct ChunkOptions {
  Share share;
  std::optional<std::uint64_t> seed;  ///< seed of the chunk order; nullopt: file order
  std::size_t chunk_bytes = 0;        ///< approximate text size; rows are never divided
};

class ChunkSource {
 public:
  ChunkSource(std::vector<Input> inputs, RowRules rules, const ChunkOptions& options);
  ~ChunkSource();

  /// Takes the next chunk; returns false if none is left. The text of a stream is read here. Only one thread
  /// may call this at a time.
  bool Take(Chunk& chunk);
  /// Reads the text of a taken chunk, unless Take has read it, and removes the byte order mark and the header
  /// of a file. Call it once for each chunk. Thread-safe.
  void Load(Chunk& chunk) const;
  /// Returns "FILE:LINE:COLUMN: found ..., expected ...". Thread-safe.
  std::string Describe(const Chunk& chunk, const Fault& fault) const;
  const std::string& path(const Chunk& chunk) const { return inputs_[chunk.range.input].path; }
  /// The first row of the whole data set, not of the part; empty if there are no rows or the first row is in
  /// a stream.
  const std::string& first_row() const { return first_row_; }
  /// A number that depends on the sizes of all inputs, which decide how they are divided among the parts.
  std::uint64_t inputs_digest() const;
  /// Number of bytes in the part, as far as known: bytes of text, or stored bytes for compressed streams.
  std::uint64_t bytes() const { return bytes_; }

 private:
  class StreamCutter;

  std::shared_ptr<const File> FileOf(std::size_t input) const;
  std::string FindFirstRow() const;
  void KeepQueriesWhole(std::vector<Range>& ranges, const QueryOf& query_of) const;
  std::string_view WithoutBeginning(std::string_view text) const;
  std::uint64_t LineOf(std::size_t input, std::uint64_t offset) const;

  std::vector<Input> inputs_;
  RowRules rules_;
  std::size_t chunk_bytes_;
  std::string first_row_;
  std::vector<Range> pieces_;
  std::size_t next_piece_ = 0;
  std::uint64_t next_number_ = 0;
  std::uint64_t bytes_ = 0;
  std::unique_ptr<StreamCutter> stream_;  ///< the stream being read

  mutable std::mutex files_mutex_;
  /// The most recently opened files, with their input numbers.
  mutable std::deque<std::pair<std::size_t, std::shared_ptr<const File>>> files_;

  /// The lines of the rows described so far, by input and offset. Counting starts at the nearest of them.
  mutable std::mutex lines_mutex_;
  mutable std::map<std::pair<std::size_t, std::uint64_t>, LinePlace> lines_;
};

}  // namespace warren::data
