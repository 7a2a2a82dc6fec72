// A part of a data set as a sequence of texts of whole rows. Inside of data/ only.
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

/// One text on its way from an input to a parser.
struct Chunk {
  std::uint64_t number = 0;  ///< in the order of the part, from 0
  Range range;
  Text text;
  /// The number of the text's first line, for a stream; 0: has to be counted in the file.
  std::uint64_t first_line = 0;
  bool after_cr = false;  ///< the byte before the text is a CR
  Array<char> buffer;     ///< where the text is
};

/// What is read of the inputs, and in which pieces.
struct ChunkOptions {
  Share share;
  std::optional<std::uint64_t> seed;  ///< chunks come in an order that it decides; none: in that of the files
  std::size_t chunk_bytes = 0;        ///< about how long a text is; one row is never divided
};

class ChunkSource {
 public:
  ChunkSource(std::vector<Input> inputs, RowRules rules, const ChunkOptions& options);
  ~ChunkSource();

  /// The next chunk; false when there is none left. What comes from a stream is read here. For one thread at
  /// a time.
  bool Take(Chunk& chunk);
  /// Reads the text of a chunk that was taken, unless that is done. For any number of threads.
  void Load(Chunk& chunk) const;
  /// "FILE:LINE:COLUMN: found ..., expected ...". For any number of threads.
  std::string Describe(const Chunk& chunk, const Fault& fault) const;
  const std::string& path(const Chunk& chunk) const { return inputs_[chunk.range.input].path; }
  /// The first row of the whole data set, not of the part; empty when there is none or it is in a stream.
  const std::string& first_row() const { return first_row_; }
  /// What the part has to read, as far as known: bytes of text, or as stored for streams that are compressed.
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
  std::unique_ptr<StreamCutter> stream_;  ///< the one being read

  mutable std::mutex files_mutex_;
  mutable std::deque<std::pair<std::size_t, std::shared_ptr<const File>>> files_;  ///< by input; the latest

  /// Of rows that were described, by input and offset: counting goes on from there.
  mutable std::mutex lines_mutex_;
  mutable std::map<std::pair<std::size_t, std::uint64_t>, LinePlace> lines_;
};

}  // namespace warren::data
