#include "data/text/csv.h"

#include <fmt/format.h>

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "data/text/format.h"
#include "data/text/option_value.h"
#include "data/text/row_parser.h"

namespace warren::data {
namespace {

using internal::BadRow;
using internal::RowWriter;

constexpr char kQuote = '"';

bool MayBeInNumber(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' || c == '-' ||
         c == '.';
}

/// Returns the end of the first cell of `row`.
std::size_t CellEnd(std::string_view row, char delimiter) {
  bool quoted = false;
  std::size_t end = 0;
  for (; end < row.size() && (quoted || row[end] != delimiter); ++end)
    quoted = quoted != (row[end] == kQuote);
  return end;
}

std::string_view Trim(std::string_view cell) {
  const auto is_outside = [](char c) { return internal::IsBlank(c) || internal::IsLineEnd(c); };
  while (!cell.empty() && is_outside(cell.front())) cell.remove_prefix(1);
  while (!cell.empty() && is_outside(cell.back())) cell.remove_suffix(1);
  return cell;
}

/// The text between delimiters, without surrounding blanks or quotes.
struct Cell {
  const char* place;  ///< where the cell begins: at the opening quote, if any
  const char* begin;
  const char* end;

  bool empty() const { return begin == end; }
};

template <typename Index>
class CsvParser {
 public:
  CsvParser(std::string_view text, const CsvOptions& options, RowBlock<Index>& block)
      : text_(text), options_(options), block_(block), writer_(block) {}

  void Run(const FaultHandler& on_fault) {
    internal::ReadLines(text_, writer_, on_fault,
                        [this](const char* begin, const char* end) { Row(begin, end); });
  }

 private:
  void Row(const char* begin, const char* end) {
    const char* at = SkipBlanks(begin, end);
    if (at == end) return;
    // Each cell takes at least one byte with its delimiter, so this limit keeps column numbers within range.
    if (static_cast<std::uint64_t>(end - begin) >= std::numeric_limits<Index>::max()) {
      Complain(begin, "a line of less than 4 GiB (64-bit indices go further)");
    }
    const std::int64_t cells_before = options_.cells >= 0 ? options_.cells
                                      : block_.empty()    ? -1
                                                          : CellsBefore();
    writer_.Begin();
    feature_ = 0;
    for (column_ = 0;; ++column_) {
      const Cell cell = NextCell(at, end);
      if (column_ == cells_before) ComplainOfCells(cell.place, cells_before);
      Take(cell);
      if (at == end) break;
      ++at;
    }
    const std::int64_t cells = column_ + 1;
    if (cells < cells_before) ComplainOfCells(end, cells_before);
    if (options_.label_column < 0) writer_.AddLabel(0);
    RequireColumn(options_.label_column, cells, end, "label");
    RequireColumn(options_.weight_column, cells, end, "weight");
    RequireColumn(options_.qid_column, cells, end, "query id");
    writer_.End();
    block_.columns = feature_;
  }

  /// Number of cells in each earlier row of the block.
  std::int64_t CellsBefore() const {
    return static_cast<std::int64_t>(block_.columns) + (options_.label_column >= 0 ? 1 : 0) +
           (options_.weight_column >= 0 ? 1 : 0) + (options_.qid_column >= 0 ? 1 : 0);
  }

  /// Returns the next cell; leaves `at` at the delimiter after it, or at the end.
  Cell NextCell(const char*& at, const char* end) const {
    at = SkipBlanks(at, end);
    if (at != end && *at == kQuote) return QuotedCell(at, end);
    const char* const begin = at;
    while (at != end && *at != options_.delimiter) ++at;
    const char* cell_end = at;
    while (cell_end != begin && internal::IsBlank(cell_end[-1])) --cell_end;
    return {begin, begin, cell_end};
  }

  /// Like NextCell, for a quoted cell. Keeps doubled quotes: a cell with a quote is not a number anyway.
  Cell QuotedCell(const char*& at, const char* end) const {
    const char* const place = at;
    const char* close = place + 1;
    while (close != end && (*close != kQuote || (close + 1 != end && close[1] == kQuote))) {
      close += *close == kQuote ? 2 : 1;
    }
    if (close == end)
      Complain(place, fmt::format("a closing quote on the same line in column {}", column_ + 1));
    at = SkipBlanks(close + 1, end);
    if (at != end && *at != options_.delimiter) {
      Complain(at, fmt::format("nothing more in column {} after the closing quote", column_ + 1));
    }
    return {place, place + 1, close};
  }

  void Take(const Cell& cell) {
    if (column_ == options_.label_column) {
      const float label = Number(cell, "a decimal number as label");
      const std::string_view text(cell.begin, static_cast<std::size_t>(cell.end - cell.begin));
      if (!internal::IsLabel(text, label)) ComplainOfNumber(cell, internal::kLabelForm);
      writer_.AddLabel(label);
    } else if (column_ == options_.weight_column) {
      const float weight = Number(cell, "a decimal number as weight");
      if (!internal::IsWeight(weight)) ComplainOfNumber(cell, internal::kWeightForm);
      writer_.SetWeight(weight);
    } else if (column_ == options_.qid_column) {
      writer_.SetQid(Qid(cell));
    } else {
      if (!cell.empty()) writer_.AddEntry(feature_, Number(cell, "a decimal number or nothing"));
      ++feature_;
    }
  }

  float Number(const Cell& cell, std::string_view expected) const {
    float value = 0;
    if (!ParseFloat(cell.begin, cell.end, value)) ComplainOfNumber(cell, expected);
    return value;
  }

  std::uint64_t Qid(const Cell& cell) const {
    std::uint64_t qid = 0;
    if (!ParseUnsigned(cell.begin, cell.end, std::numeric_limits<std::uint64_t>::max(), qid)) {
      Complain(cell.place,
               fmt::format("a whole number from 0 to 2^64 - 1 as query id in column {}", column_ + 1));
    }
    return qid;
  }

  void RequireColumn(int column, std::int64_t cells, const char* row_end, std::string_view name) const {
    if (column >= cells) Complain(row_end, fmt::format("a {} in column {}", name, column + 1));
  }

  [[noreturn]] void ComplainOfNumber(const Cell& cell, std::string_view expected) const {
    Complain(cell.place, fmt::format("{} in column {}", expected, column_ + 1));
  }

  [[noreturn]] void ComplainOfCells(const char* place, std::int64_t cells) const {
    Complain(place, fmt::format("as many cells as the rows before, {}", cells));
  }

  [[noreturn]] void Complain(const char* place, std::string expected) const {
    throw BadRow{{static_cast<std::size_t>(place - text_.data()), std::move(expected)}};
  }

  const char* SkipBlanks(const char* at, const char* end) const {
    while (at != end && internal::IsBlank(*at) && *at != options_.delimiter) ++at;
    return at;
  }

  std::string_view text_;
  const CsvOptions& options_;
  RowBlock<Index>& block_;
  RowWriter<Index> writer_;
  std::int64_t column_ = 0;  ///< column of the current cell in the text
  Index feature_ = 0;        ///< number of the next feature in the current row
};

RowParser CsvRows(const TextOptions& options, std::string_view first_row) {
  CsvOptions csv = options.csv;
  // With a fixed number of cells, whether a row is bad does not depend on its part or chunk.
  if (!first_row.empty()) csv.cells = CountCells(first_row, csv.delimiter);
  return RowParser([csv](std::string_view text, auto& block, const FaultHandler& on_fault) {
    ParseCsv(text, csv, block, on_fault);
  });
}

QueryOf CsvQueries(const TextOptions& options, std::string_view /*first_row*/) {
  if (options.csv.qid_column < 0) return {};
  return [csv = options.csv](std::string_view row) -> std::optional<std::string> {
    if (CountCells(row, csv.delimiter) == 0) return std::nullopt;
    return internal::QueryName(CellOf(row, csv.qid_column, csv.delimiter));
  };
}

template <int CsvOptions::*kColumn>
void SetColumn(TextOptions& options, std::string_view key, std::string_view value) {
  options.csv.*kColumn = WholeNumber(key, value, -1, std::numeric_limits<int>::max() - 1);
}

template <int CsvOptions::*kColumn>
std::string GetColumn(const TextOptions& options) {
  return std::to_string(options.csv.*kColumn);
}

void SetDelimiter(TextOptions& options, std::string_view key, std::string_view value) {
  if (value == "\\t" || value == "tab") value = "\t";
  if (value.size() != 1) throw DataError(fmt::format("{}={}: expected one character, or tab", key, value));
  options.csv.delimiter = value[0];
}

constexpr FormatOption kOptions[] = {
    {"label_column", SetColumn<&CsvOptions::label_column>, GetColumn<&CsvOptions::label_column>},
    {"weight_column", SetColumn<&CsvOptions::weight_column>, GetColumn<&CsvOptions::weight_column>},
    {"qid_column", SetColumn<&CsvOptions::qid_column>, GetColumn<&CsvOptions::qid_column>},
    {"delimiter", SetDelimiter,
     [](const TextOptions& options) { return std::to_string(static_cast<int>(options.csv.delimiter)); }},
    {"header",
     [](TextOptions& options, std::string_view key, std::string_view value) {
       options.csv_header = WholeNumber(key, value, 0, 1) != 0;
     },
     [](const TextOptions& options) { return fmt::format("{}", options.csv_header); }},
};

}  // namespace

extern const TextFormat kCsvFormat;
constinit const TextFormat kCsvFormat{
    .name = "csv",
    .parser = CsvRows,
    .queries = CsvQueries,
    .header = [](const TextOptions& options) { return options.csv_header; },
    .fixed_columns = true,
    .options = kOptions,
    .check = [](const TextOptions& options) { RequireValid(options.csv); },
};

void RequireValid(const CsvOptions& options) {
  struct Special {
    const char* name;
    int column;
  };
  const Special columns[] = {{"label_column", options.label_column},
                             {"weight_column", options.weight_column},
                             {"qid_column", options.qid_column}};
  for (const Special& one : columns) {
    if (one.column < -1) {
      throw DataError(fmt::format("CSV: {} is {}, expected a column counted from 0, or -1 for none", one.name,
                                  one.column));
    }
    for (const Special* other = columns; other != &one; ++other) {
      if (one.column < 0 || one.column != other->column) continue;
      throw DataError(fmt::format("CSV: {} and {} are both {}, expected different columns", other->name,
                                  one.name, one.column));
    }
  }
  if (options.delimiter == kQuote || internal::IsLineEnd(options.delimiter) ||
      MayBeInNumber(options.delimiter)) {
    throw DataError(fmt::format(
        "CSV: the delimiter is {}, expected a character that is neither part of a number nor a quote nor a line end",
        Quote(std::string_view(&options.delimiter, 1), 0)));
  }
}

std::string_view CellOf(std::string_view row, int column, char delimiter) {
  for (;; --column) {
    const std::size_t end = CellEnd(row, delimiter);
    std::string_view cell = Trim(row.substr(0, end));
    if (column == 0) {
      const bool quoted = cell.size() > 1 && cell.front() == kQuote && cell.back() == kQuote;
      return quoted ? cell.substr(1, cell.size() - 2) : cell;
    }
    if (end == row.size()) return {};
    row.remove_prefix(end + 1);
  }
}

std::int64_t CountCells(std::string_view row, char delimiter) {
  if (Trim(row).empty() && row.find(delimiter) == std::string_view::npos) return 0;
  for (std::int64_t cells = 1;; ++cells) {
    const std::size_t end = CellEnd(row, delimiter);
    if (end == row.size()) return cells;
    row.remove_prefix(end + 1);
  }
}

template <typename Index>
void ParseCsv(std::string_view text, const CsvOptions& options, RowBlock<Index>& block,
              const FaultHandler& on_fault) {
  RequireValid(options);
  CsvParser<Index>(text, options, block).Run(on_fault);
}

template void ParseCsv(std::string_view, const CsvOptions&, RowBlock<std::uint32_t>&, const FaultHandler&);
template void ParseCsv(std::string_view, const CsvOptions&, RowBlock<std::uint64_t>&, const FaultHandler&);

}  // namespace warren::data
