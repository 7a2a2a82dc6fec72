// A text format, as the reader knows it: one row of the registry (registry.h). docs/explanation/extending.md
// shows all that one adds.
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

/// Adds the rows of a text to a block, of 32-bit or of 64-bit indices: the text is whole rows, followed by
/// kTextPadding bytes that can be read, and may be of any place in the data set; a block has rows of the same
/// data set before, or none. Tells `on_fault` of each row that is no row, with its place in the text, and
/// leaves it out when that returns. Called once for a text of some MiB, by several threads at once.
class RowParser {
 public:
  using Narrow = RowBlock<std::uint32_t>;
  using Wide = RowBlock<std::uint64_t>;

  /// `parse(text, block, on_fault)` takes both: a lambda with an `auto& block`.
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

/// "key=value" in the name of a data set. A key may be one of several formats.
struct FormatOption {
  std::string_view key;
  /// Keeps the value in TextOptions::of_format or in a member of TextOptions; throws DataError when it is
  /// none (option_value.h).
  void (*set)(TextOptions& options, std::string_view key, std::string_view value) = nullptr;
  /// Another text for each value: a cache that was made with another one is not taken.
  std::string (*get)(const TextOptions& options) = nullptr;
};

/// All that the reader has to know of a format. What the options of the data set and its first row decide for
/// all of it is decided once: `first_row` is that of the whole data set, whatever part is read, without its
/// end; empty when there is none or it is in a stream, and gone when the function returns.
struct TextFormat {
  std::string_view name;  ///< "format=NAME"
  RowParser (*parser)(const TextOptions& options, std::string_view first_row) = nullptr;
  /// Null, or an empty function: rows name no queries.
  QueryOf (*queries)(const TextOptions& options, std::string_view first_row) = nullptr;
  RowEnds row_ends = kLineEnds;                          ///< see RowRules
  char comment = '\0';                                   ///< see RowRules
  bool (*header)(const TextOptions& options) = nullptr;  ///< see RowRules; null: no file has one
  /// Every row has a place for each column: they are numbered by it, so indexing_mode has no meaning, and all
  /// rows of a data set have equally many.
  bool fixed_columns = false;
  std::span<const FormatOption> options = {};
  /// Throws DataError when options do not fit each other; null: they always do.
  void (*check)(const TextOptions& options) = nullptr;
};

}  // namespace warren::data
