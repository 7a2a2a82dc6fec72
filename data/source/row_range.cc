#include "data/source/row_range.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/error.h"

namespace warren::data {
namespace {

/// The number of bytes read after the end of a range. They usually contain the rest of its last row.
constexpr std::uint64_t kTail = 4096;
constexpr std::uint64_t kBlock = std::uint64_t{64} << 10;

/// Returns the position of the first row that begins at or after `offset`.
std::uint64_t RowBegin(const File& file, std::uint64_t offset, const RowEnds& row_ends) {
  if (offset == 0 || offset >= file.size()) return std::min(offset, file.size());
  RowScanner scanner(file, offset - 1, row_ends);
  scanner.Next();
  return scanner.position();
}

/// Returns the query of the last good row before `offset`, at which a row must begin; nullopt if there is
/// none.
std::optional<std::string> QueryBefore(const File& file, std::uint64_t offset, const RowEnds& row_ends,
                                       const QueryOf& query_of) {
  // Each pass reads twice as much of the text before `offset`, until it contains a complete good row.
  for (std::uint64_t bytes = kTail; offset > 0; bytes *= 2) {
    const std::uint64_t from = offset > bytes ? offset - bytes : 0;
    RequireRowEnds(file.name(), from, offset - from);
    std::string text(offset - from, '\0');
    file.ReadAt(from, text.data(), text.size());
    std::size_t end = text.size();
    while (end > 0) {
      const std::size_t row_end = end - 1;
      const std::size_t begin = row_ends.BehindLast(std::string_view(text).substr(0, row_end));
      if (begin == 0 && from > 0) break;
      auto query = query_of(std::string_view(text).substr(begin, row_end - begin));
      if (query) return query;
      end = begin;
    }
    if (from == 0) break;
  }
  return std::nullopt;
}

}  // namespace

std::string_view RowScanner::Next() {
  std::size_t end = row_ends_.Find(text(), at_);
  while (end == text_.size() && ReadMore()) end = row_ends_.Find(text(), end - dropped_);
  const std::string_view row = text().substr(at_, end - at_);
  at_ = std::min(end + 1, text_.size());
  return row;
}

/// Drops the rows already returned and reads more. Returns false at the end of the file.
bool RowScanner::ReadMore() {
  const std::uint64_t known = begin_ + text_.size();
  if (known >= file_.size()) {
    dropped_ = 0;
    return false;
  }
  dropped_ = at_;
  std::copy(text_.begin() + at_, text_.end(), text_.begin());
  text_.resize(text_.size() - at_);
  begin_ += at_;
  at_ = 0;
  const std::size_t old = text_.size();
  RequireRowEnds(file_.name(), begin_, old);
  // The length doubles, so that long rows take few reads.
  const std::uint64_t more =
      std::min({std::max<std::uint64_t>(kBlock, old), kMostBytesToFindRowEnd - old, file_.size() - known});
  text_.resize(old + more);
  file_.ReadAt(known, text_.data() + old, more);
  return true;
}

Text ReadRows(const File& file, std::uint64_t begin, std::uint64_t end, const RowEnds& row_ends,
              Array<char>& buffer) {
  if (file.size() < end) {
    throw DataError(fmt::format(
        "{}: has {} bytes, but had at least {} when the files were listed; no program may write to it while it is read",
        file.name(), file.size(), end));
  }
  // If the byte before `begin` is a row end, a row begins exactly at `begin`.
  const std::uint64_t from = begin > 0 ? begin - 1 : 0;
  std::uint64_t to = std::min(file.size(), end + kTail);
  const auto resize = [&] { buffer.resize(static_cast<std::size_t>(to - from) + kTextPadding); };
  resize();
  file.ReadAt(from, buffer.data(), static_cast<std::size_t>(to - from));
  const auto text = [&] { return std::string_view(buffer.data(), static_cast<std::size_t>(to - from)); };

  const std::size_t range = static_cast<std::size_t>(end - from);
  std::size_t first = 0;
  if (begin > 0) {
    first = row_ends.Find(text().substr(0, range), 0) + 1;
    if (first >= range) return {{}, begin};  // the whole range is inside a row that began earlier
  }
  // The last row begins before `end`, so it ends at end - 1 or later.
  std::size_t last = row_ends.Find(text(), range - 1);
  const std::size_t last_row = std::max(first, row_ends.BehindLast(text().substr(0, range - 1)));
  while (last == text().size() && to < file.size()) {
    const std::size_t old = text().size();
    RequireRowEnds(file.name(), from + last_row, old - last_row);
    // Only new bytes are read. The length doubles, so that long rows take few reads.
    const std::uint64_t more = std::min({std::max<std::uint64_t>(kBlock, old - last_row),
                                         kMostBytesToFindRowEnd - (old - last_row), file.size() - to});
    to += more;
    resize();
    file.ReadAt(to - more, buffer.data() + old, static_cast<std::size_t>(more));
    last = row_ends.Find(text(), old);
  }
  last = std::min(last + 1, text().size());
  return {text().substr(first, last - first), from + first};
}

std::uint64_t QueryBegin(const File& file, std::uint64_t offset, const RowEnds& row_ends,
                         const QueryOf& query_of) {
  const std::uint64_t begin = RowBegin(file, offset, row_ends);
  if (begin == 0) return 0;
  std::optional<std::string> before;
  RowScanner scanner(file, begin, row_ends);
  while (!scanner.AtEnd()) {
    const std::uint64_t row_begin = scanner.position();
    const auto query = query_of(scanner.Next());
    if (!query) continue;  // blank, a comment or a bad row
    if (query->empty()) return begin;
    if (!before) before = QueryBefore(file, begin, row_ends, query_of);
    if (query != before) return row_begin;
  }
  return file.size();
}

void RequireRowEnds(const std::string& file, std::uint64_t begin, std::uint64_t bytes) {
  if (bytes <= kMostRowBytes) return;
  throw DataError(
      fmt::format("{}: no line end in the {} bytes from byte {} on, expected rows of text, of at most {} MiB",
                  file, bytes, begin, kMostRowBytes >> 20));
}

std::uint64_t CountLineEnds(std::string_view text, bool& after_cr) {
  std::uint64_t count = 0;
  for (const char c : text) {
    if (c == '\r' || (c == '\n' && !after_cr)) ++count;
    after_cr = c == '\r';
  }
  return count;
}

LinePlace LineAt(const File& file, std::uint64_t offset, LinePlace known) {
  Array<char> block;
  block.resize(kBlock);
  while (known.offset < offset) {
    const auto bytes = static_cast<std::size_t>(std::min(kBlock, offset - known.offset));
    file.ReadAt(known.offset, block.data(), bytes);
    known.line += CountLineEnds({block.data(), bytes}, known.after_cr);
    known.offset += bytes;
  }
  return known;
}

}  // namespace warren::data
