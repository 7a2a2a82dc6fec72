#include "data/source/chunks.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace warren::data {
namespace {

constexpr std::size_t kMostOpenFiles = 32;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string_view WithoutByteOrderMark(std::string_view text) {
  return text.starts_with(kByteOrderMark) ? text.substr(kByteOrderMark.size()) : text;
}

std::string_view WithoutFirstRow(std::string_view text, const RowEnds& row_ends) {
  return text.substr(std::min(row_ends.Find(text) + 1, text.size()));
}

}  // namespace

/// Splits a stream into chunks of whole rows.
class ChunkSource::StreamCutter {
 public:
  StreamCutter(const Input& input, const RowEnds& row_ends, std::size_t chunk_bytes)
      : stream_(OpenStream(input)), row_ends_(row_ends), chunk_bytes_(chunk_bytes) {}

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
        // The row is longer than the buffer.
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
  /// Returns the end of the last complete row in [from, to), or `before` if no row ends there.
  std::size_t RowsEnd(const Array<char>& text, std::size_t from, std::size_t to, std::size_t before) const {
    const std::size_t end = row_ends_.BehindLast({text.data() + from, to - from});
    return end > 0 ? from + end : before;
  }

  std::unique_ptr<Stream> stream_;
  const RowEnds& row_ends_;
  std::size_t chunk_bytes_;
  Array<char> rest_;  ///< text read after the last complete row
  bool ended_ = false;
  std::uint64_t position_ = 0;
  std::uint64_t line_ = 1;
  bool after_cr_ = false;
};

ChunkSource::ChunkSource(std::vector<Input> inputs, RowRules rules, const ChunkOptions& options)
    : inputs_(std::move(inputs)),
      rules_(std::move(rules)),
      chunk_bytes_(std::max<std::size_t>(options.chunk_bytes, 1)) {
  first_row_ = FindFirstRow();
  const QueryOf query_of = rules_.queries ? rules_.queries(first_row_) : QueryOf();
  std::vector<Range> ranges = Cut(inputs_, options.share);
  KeepQueriesWhole(ranges, query_of);
  for (const Range& range : ranges) bytes_ += range.end - range.begin;
  pieces_ = CutIntoPieces(inputs_, ranges, chunk_bytes_);
  if (!options.seed) return;
  // A query that spans several pieces can be joined again only while these are consecutive, i.e. before the
  // shuffle.
  KeepQueriesWhole(pieces_, query_of);
  Shuffle(pieces_, *options.seed);
}

ChunkSource::~ChunkSource() = default;

std::uint64_t ChunkSource::inputs_digest() const {
  return DigestOf(inputs_);
}

std::string ChunkSource::FindFirstRow() const {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    // The first row of a stream stays unknown, because standard input and pipes can be read only once.
    if (!inputs_[i].divisible) return {};
    const std::shared_ptr<const File> file = FileOf(i);
    RowScanner scanner(*file, 0, rules_.row_ends);
    for (bool first = true; !scanner.AtEnd(); first = false) {
      std::string_view row = scanner.Next();
      if (first && rules_.header) continue;
      if (first) row = WithoutByteOrderMark(row);
      const std::size_t word = row.find_first_not_of(" \t");
      if (word == std::string_view::npos) continue;
      if (rules_.comment != '\0' && row[word] == rules_.comment) continue;
      return std::string(row);
    }
  }
  return {};
}

std::shared_ptr<const File> ChunkSource::FileOf(std::size_t input) const {
  const std::lock_guard lock(files_mutex_);
  for (const auto& [number, file] : files_) {
    if (number == input) return file;
  }
  // A data set may have more files than a process may open. A file dropped here stays open while other
  // threads read it.
  if (files_.size() == kMostOpenFiles) files_.pop_front();
  files_.emplace_back(input, OpenFile(inputs_[input]));
  return files_.back().second;
}

void ChunkSource::KeepQueriesWhole(std::vector<Range>& ranges, const QueryOf& query_of) const {
  if (!query_of) return;
  const auto query_begin = [&](const Range& range, std::uint64_t offset) {
    return QueryBegin(*FileOf(range.input), offset, rules_.row_ends, query_of);
  };
  for (Range& range : ranges) {
    if (!inputs_[range.input].divisible) continue;
    if (range.begin > 0) range.begin = query_begin(range, range.begin);
    if (range.end < inputs_[range.input].size) range.end = query_begin(range, range.end);
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
    stream_ = std::make_unique<StreamCutter>(inputs_[piece.input], rules_.row_ends, chunk_bytes_);
  }
  chunk.number = next_number_++;
  return true;
}

void ChunkSource::Load(Chunk& chunk) const {
  if (chunk.first_line == 0) {
    chunk.text = ReadRows(*FileOf(chunk.range.input), chunk.range.begin, chunk.range.end, rules_.row_ends,
                          chunk.buffer);
  }
  if (chunk.text.begin > 0) return;
  const std::string_view rows = WithoutBeginning(chunk.text.rows);
  chunk.text = {rows, chunk.text.rows.size() - rows.size()};
}

/// Returns the text of the beginning of a file without the byte order mark and the header, if any.
std::string_view ChunkSource::WithoutBeginning(std::string_view text) const {
  text = WithoutByteOrderMark(text);
  return rules_.header ? WithoutFirstRow(text, rules_.row_ends) : text;
}

std::uint64_t ChunkSource::LineOf(std::size_t input, std::uint64_t offset) const {
  const std::lock_guard lock(lines_mutex_);
  const auto next = lines_.upper_bound({input, offset});
  LinePlace known;
  if (next != lines_.begin() && std::prev(next)->first.first == input) known = std::prev(next)->second;
  const LinePlace place = LineAt(*FileOf(input), offset, known);
  lines_[{input, offset}] = place;
  return place.line;
}

std::string ChunkSource::Describe(const Chunk& chunk, const Fault& fault) const {
  std::uint64_t line = 0;
  if (chunk.first_line == 0) {
    line = LineOf(chunk.range.input, chunk.text.begin + fault.position);
  } else {
    bool after_cr = chunk.after_cr;
    // Counts from the start of the buffer, since the rows may begin later.
    const auto before =
        static_cast<std::size_t>(chunk.text.rows.data() - chunk.buffer.data()) + fault.position;
    line = chunk.first_line + CountLineEnds({chunk.buffer.data(), before}, after_cr);
  }
  return data::Describe(path(chunk), line, chunk.text.rows, fault);
}

}  // namespace warren::data
