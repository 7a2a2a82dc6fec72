// The interface of a text format: an entry of the registry (registry.h). docs/explanation/extending.md shows
// how to add one.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "data/error.h"
#include "data/row_block.h"
#include "data/source/row_rules.h"
#include "data/text/options.h"

namespace warren::data {

/// Parses text and appends its rows to a block with 32-bit or 64-bit indices. The text consists of whole
/// rows, is followed by kTextPadding readable bytes, and may come from anywhere in the data set; the block is
/// empty or has rows of the same data set. Calls `on_fault` for each bad row, with its position in the text,
/// and skips the row if the handler returns. Called with a few MiB of text at a time, by several threads
/// concurrently.
class RowParser {
 public:
  using Narrow = RowBlock<std::uint32_t>;
  using Wide = RowBlock<std::uint64_t>;

  /// `parse(text, block, on_fault)` must accept both block types, e.g. a lambda with an `auto& block`.
  template <typename Parse>
  explicit RowParser(const Parse& parse) : narrow_(parse), wide_(parse) {}

  void operator()(std::string_view text, Narrow& block, const FaultHandler& on_fault) const {
    narrow_(text, block, on_fault);
  }
  void operator()(std::string_view text, Wide& block, const FaultHandler& on_fault) const {
    wide_(text, block, on_fault);
  }

 private:
  std::function<void(std::string_view, Narrow&, const FaultHandler&)> narrow_;
  std::function<void(std::string_view, Wide&, const FaultHandler&)> wide_;
};

/// A "key=value" option in the name of a data set. Several formats may share a key.
struct FormatOption {
  std::string_view key;
  /// Stores the value in the format's own member of TextOptions or, if it has none, in
  /// TextOptions::of_format; throws DataError if the value is invalid (option_value.h).
  void (*set)(TextOptions& options, std::string_view key, std::string_view value) = nullptr;
  /// Returns a different string for each value: a cache made with another value is not used.
  std::string (*get)(const TextOptions& options) = nullptr;
};

/// Everything that the reader needs to know about a format. The functions that take the data set's options
/// and first row are called once for each Reader. `first_row` is the first row of the whole data set,
/// whichever part is read, without its terminator. It is empty if there are no rows or the first row is in a
/// stream, and is only valid during the call.
struct TextFormat {
  std::string_view name;  ///< the NAME in "format=NAME"
  RowParser (*parser)(const TextOptions& options, std::string_view first_row) = nullptr;
  /// Makes the QueryOf of a data set. If this or its result is null, rows name no queries.
  QueryOf (*queries)(const TextOptions& options, std::string_view first_row) = nullptr;
  RowEnds row_ends = kLineEnds;                          ///< see RowRules
  char comment = '\0';                                   ///< see RowRules
  bool (*header)(const TextOptions& options) = nullptr;  ///< see RowRules; null: files have no header
  /// Whether every row has a cell for each column. Columns are then numbered by position, so that
  /// indexing_mode has no meaning, and all rows of a data set must have the same number of columns.
  bool fixed_columns = false;
  std::span<const FormatOption> options = {};
  /// Throws DataError if options contradict each other; null: they never do.
  void (*check)(const TextOptions& options) = nullptr;
};

}  // namespace warren::data
