#include "data/source/chunks.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "data/text/libsvm.h"
#include "data/text/number.h"
#include "data/text/row_text.h"

namespace warren::data {
namespace {

using internal::IsBlank;
using internal::IsLineEnd;

constexpr std::size_t kMostOpenFiles = 32;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string_view WithoutFirstLine(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && !IsLineEnd(text[end])) ++end;
  return text.substr(std::min(end + 1, text.size()));
}

/// The same for all ways to write a number; nothing for a row that is bad because it has none.
std::optional<std::string> QueryName(std::string_view text) {
  std::uint64_t qid = 0;
  const bool is_number =
      ParseUnsigned(text.data(), text.data() + text.size(), std::numeric_limits<std::uint64_t>::max(), qid);
  return is_number ? std::optional("qid:" + std::to_string(qid)) : std::nullopt;
}

/// See QueryOf. The words behind the label: "qid:7".
std::optional<std::string> LibSvmQuery(std::string_view row) {
  const auto skip = [&row](auto belongs) {
    std::size_t count = 0;
    while (count < row.size() && belongs(row[count])) ++count;
    const std::string_view skipped = row.substr(0, count);
    row.remove_prefix(count);
    return skipped;
  };
  const auto is_word = [](char c) { return !IsBlank(c) && !IsLineEnd(c) && c != '#'; };
  skip(IsBlank);
  if (skip(is_word).empty()) return std::nullopt;
  skip(IsBlank);
  const std::string_view word = skip(is_word);
  return word.starts_with("qid:") ? QueryName(word.substr(4)) : std::string();
}

std::optional<std::string> CsvQuery(std::string_view row, const CsvOptions& options) {
  if (CountCells(row, options.delimiter) == 0) return std::nullopt;
  return QueryName(CellOf(row, options.qid_column, options.delimiter));
}

}  // namespace

/// Cuts a stream into texts of whole rows.
class ChunkSource::StreamCutter {
 public:
  StreamCutter(const std::string& path, std::size_t chunk_bytes)
      : stream_(OpenStream(path)), chunk_bytes_(chunk_bytes) {}

  bool Next(Chunk& chunk) {
    Array<char>& buffer = chunk.buffer;
    std::size_t filled = rest_.size();
    buffer.resize(std::max(chunk_bytes_, filled) + kTextPadding);
    std::copy(rest_.begin(), rest_.end(), buffer.begin());
    rest_.clear();
    std::size_t rows_end = 0;
    for (std::size_t looked = filled; !ended_;) {
      if (filled + kTextPadding == buffer.size()) {
        if (rows_end > 0) break;
        RequireRowEnds(stream_->name(), position_, filled);
        // One row is longer than a chunk.
        buffer.resize(std::min<std::size_t>(2 * filled, kMostBytesToFindRowEnd) + kTextPadding);
      }
      const std::size_t got = stream_->Read(buffer.data() + filled, buffer.size() - kTextPadding - filled);
      ended_ = got == 0;
      filled += got;
      rows_end = RowsEnd(buffer, looked, filled, rows_end);
      looked = filled;
    }
    if (ended_) rows_end = filled;
    rest_.append({buffer.data() + rows_end, filled - rows_end});
    chunk.text = {{buffer.data(), rows_end}, position_};
    chunk.first_line = line_;
    chunk.after_cr = after_cr_;
    line_ += CountLineEnds(chunk.text.rows, after_cr_);
    position_ += rows_end;
    return rows_end > 0;
  }

 private:
  /// The place behind the last line end of what has come; the one known before when there is none in it.
  static std::size_t RowsEnd(const Array<char>& text, std::size_t from, std::size_t to, std::size_t before) {
    while (to > from && !IsLineEnd(text[to - 1])) --to;
    return to > from ? to : before;
  }

  std::unique_ptr<Stream> stream_;
  std::size_t chunk_bytes_;
  Array<char> rest_;  ///< the beginning of a row
  bool ended_ = false;
  std::uint64_t position_ = 0;
  std::uint64_t line_ = 1;
  bool after_cr_ = false;
};

ChunkSource::ChunkSource(std::vector<Input> inputs, const TextOptions& options, Share share,
                         std::size_t chunk_bytes)
    : inputs_(std::move(inputs)), options_(options), chunk_bytes_(std::max<std::size_t>(chunk_bytes, 1)) {
  std::vector<Range> ranges = Cut(inputs_, options.share.value_or(share));
  KeepQueriesWhole(ranges);
  for (const Range& range : ranges) bytes_ += range.end - range.begin;
  pieces_ = CutIntoPieces(inputs_, ranges, chunk_bytes_);
  if (!options.seed) return;
  // Only in order do the pieces of a query come together again.
  KeepQueriesWhole(pieces_);
  Shuffle(pieces_, *options.seed);
}

ChunkSource::~ChunkSource() = default;

std::optional<bool> ChunkSource::HasQueries() const {
  if (options_.format != Format::kLibsvm) return std::nullopt;
  const auto query = LibSvmQuery(FirstRow());
  return query ? std::optional(!query->empty()) : std::nullopt;
}

std::string ChunkSource::FirstRow() const {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    // A stream can be read once only.
    if (!inputs_[i].divisible) return {};
    const std::shared_ptr<const File> file = FileOf(i);
    RowScanner scanner(*file, 0);
    for (bool first = true; !scanner.AtEnd(); first = false) {
      const std::string_view row = scanner.Next();
      if (first && options_.csv_header) continue;
      const std::size_t word = row.find_first_not_of(" \t");
      if (word == std::string_view::npos) continue;
      if (options_.format != Format::kCsv && row[word] == '#') continue;
      return std::string(first ? WithoutBeginning(row) : row);
    }
  }
  return {};
}

std::shared_ptr<const File> ChunkSource::FileOf(std::size_t input) const {
  const std::lock_guard lock(files_mutex_);
  for (const auto& [number, file] : files_) {
    if (number == input) return file;
  }
  // A data set may have more files than a process may open; whoever reads one that goes here keeps it.
  if (files_.size() == kMostOpenFiles) files_.pop_front();
  files_.emplace_back(input, OpenFile(inputs_[input].path, inputs_[input].container));
  return files_.back().second;
}

void ChunkSource::KeepQueriesWhole(std::vector<Range>& ranges) const {
  QueryOf query_of;
  if (options_.format == Format::kLibsvm) {
    const bool has_queries = HasQueries().value_or(false);
    query_of = [has_queries](std::string_view row) {
      auto query = LibSvmQuery(row);
      if (has_queries && query && query->empty()) query.reset();  // a bad row
      return query;
    };
  }
  if (options_.format == Format::kCsv && options_.csv.qid_column >= 0) {
    query_of = [this](std::string_view row) { return CsvQuery(row, options_.csv); };
  }
  if (!query_of) return;
  for (Range& range : ranges) {
    if (!inputs_[range.input].divisible) continue;
    if (range.begin > 0) range.begin = QueryBegin(*FileOf(range.input), range.begin, query_of);
    if (range.end < inputs_[range.input].size)
      range.end = QueryBegin(*FileOf(range.input), range.end, query_of);
    range.end = std::max(range.begin, range.end);
  }
}

bool ChunkSource::Take(Chunk& chunk) {
  for (;;) {
    if (stream_) {
      chunk.range = pieces_[next_piece_];
      if (stream_->Next(chunk)) break;
      stream_.reset();
      ++next_piece_;
    }
    if (next_piece_ == pieces_.size()) return false;
    const Range& piece = pieces_[next_piece_];
    chunk.range = piece;
    chunk.first_line = 0;
    if (inputs_[piece.input].divisible) {
      ++next_piece_;
      break;
    }
    stream_ = std::make_unique<StreamCutter>(inputs_[piece.input].path, chunk_bytes_);
  }
  chunk.number = next_number_++;
  return true;
}

void ChunkSource::Load(Chunk& chunk) const {
  if (chunk.first_line == 0) {
    chunk.text = ReadRows(*FileOf(chunk.range.input), chunk.range.begin, chunk.range.end, chunk.buffer);
  }
  if (chunk.text.begin > 0) return;
  const std::string_view rows = WithoutBeginning(chunk.text.rows);
  chunk.text = {rows, chunk.text.rows.size() - rows.size()};
}

/// What a file may have before its rows.
std::string_view ChunkSource::WithoutBeginning(std::string_view text) const {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return options_.format == Format::kCsv && options_.csv_header ? WithoutFirstLine(text) : text;
}

std::string ChunkSource::Describe(const Chunk& chunk, const Fault& fault) const {
  std::uint64_t line = 0;
  if (chunk.first_line == 0) {
    line = LineAt(*FileOf(chunk.range.input), chunk.text.begin + fault.position);
  } else {
    bool after_cr = chunk.after_cr;
    // From the buffer: its beginning may be no row.
    const auto before =
        static_cast<std::size_t>(chunk.text.rows.data() - chunk.buffer.data()) + fault.position;
    line = chunk.first_line + CountLineEnds({chunk.buffer.data(), before}, after_cr);
  }
  return data::Describe(path(chunk), line, chunk.text.rows, fault);
}

}  // namespace warren::data
