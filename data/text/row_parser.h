// Code shared by the text parsers: iteration over lines, and the parts of a row that several formats have in
// common. Internal to data/.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/error.h"
#include "data/text/number.h"
#include "data/text/row_text.h"
#include "data/text/row_writer.h"

namespace warren::data::internal {

/// Calls `read_row(begin, end)` for the line that begins at `at`. If `read_row` throws BadRow, removes the
/// unfinished row and calls `on_fault`. Returns the position after the line end.
template <typename Index, typename ReadRow>
const char* ReadLine(std::string_view text, const char* at, RowWriter<Index>& writer,
                     const FaultHandler& on_fault, const ReadRow& read_row) {
  const char* const end = text.data() + text.size();
  const char* line_end = at;
  while (line_end != end && !IsLineEnd(*line_end)) ++line_end;
  try {
    read_row(at, line_end);
  } catch (const BadRow& bad) {
    writer.Begin();
    on_fault(bad.fault);
  }
  return line_end == end ? end : line_end + 1;
}

/// Calls ReadLine for all lines of the text.
template <typename Index, typename ReadRow>
void ReadLines(std::string_view text, RowWriter<Index>& writer, const FaultHandler& on_fault,
               const ReadRow& read_row) {
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at != end;) at = ReadLine(text, at, writer, on_fault, read_row);
}

constexpr std::string_view kLabelForm = "a label that is not nan and within the range of a float";
constexpr std::string_view kWeightForm = "a finite weight of at least 0";

/// Whether rows with this label, which ParseFloat has read from `text`, can be used for training. Survival
/// labels may be infinite, but only if written as inf or infinity: a number too large for a float is an
/// error.
inline bool IsLabel(std::string_view text, float label) {
  if (std::isfinite(label)) return true;
  const bool says_infinity = text.find_first_of("iI") != std::string_view::npos;
  return !std::isnan(label) && says_infinity;
}
inline bool IsWeight(float weight) {
  return weight >= 0 && std::isfinite(weight);
}

/// Returns the weight in `word`, which is label:weight; nullopt if there is no colon. Throws BadRow if the
/// weight is invalid.
inline std::optional<float> ReadWeight(const RowText& row, std::string_view word) {
  const std::size_t colon = word.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  float weight = 0;
  if (!ParseFloat(word.data() + colon + 1, word.data() + word.size(), weight)) {
    row.Complain(word.data(), "label:weight, both of them decimal numbers");
  }
  if (!IsWeight(weight)) row.Complain(word.data(), std::string(kWeightForm));
  return weight;
}

/// Returns the position of the first index in a row that repeats an earlier one; nullopt if all differ.
template <typename Index>
std::optional<std::size_t> FindRepeated(std::span<const Index> indices) {
  bool ascending = true;
  for (std::size_t i = 1; i < indices.size(); ++i) ascending &= indices[i - 1] < indices[i];
  if (ascending) return std::nullopt;
  std::vector<Index> seen(indices.begin(), indices.end());
  std::sort(seen.begin(), seen.end());
  if (std::adjacent_find(seen.begin(), seen.end()) == seen.end()) return std::nullopt;
  std::set<Index> before;
  std::size_t place = 0;
  while (before.insert(indices[place]).second) ++place;
  return place;
}

/// Throws BadRow if the last row of `block`, which is not ended yet, has an index twice. `entries`: the row's
/// text from its first entry on.
template <typename Index>
void RequireIndicesOnce(const RowBlock<Index>& block, RowText entries) {
  const std::size_t begin = block.offsets.back();
  const std::span<const Index> indices(block.indices.data() + begin, block.indices.size() - begin);
  const std::optional<std::size_t> again = FindRepeated(indices);
  if (!again) return;
  for (std::size_t passed = 0; passed < *again; ++passed) entries.Word();
  entries.Complain(entries.at(), "each index once in a row");
}

/// Returns the canonical name of a query (see QueryOf), the same for all spellings of its number; nullopt if
/// it is not a number.
inline std::optional<std::string> QueryName(std::string_view text) {
  std::uint64_t qid = 0;
  const bool is_number =
      ParseUnsigned(text.data(), text.data() + text.size(), std::numeric_limits<std::uint64_t>::max(), qid);
  return is_number ? std::optional(std::to_string(qid)) : std::nullopt;
}

/// Parses an index, or libfm's field, that fills [begin, end), a part of `word`. The result is zero-based.
/// Throws BadRow if the number is invalid; `form` is the expected form of the word, `name` the name of the
/// number, such as "an index".
template <typename Index>
Index ReadIndex(const RowText& row, std::string_view word, const char* begin, const char* end,
                std::uint64_t first, std::string_view form, std::string_view name) {
  // With the greatest value as an index, the number of columns would overflow.
  const std::uint64_t most = std::numeric_limits<Index>::max() - 1 + (sizeof(Index) == 4 ? first : 0);
  std::uint64_t index = 0;
  if (!ParseUnsigned(begin, end, most, index) || index < first) {
    const bool is_number = ParseUnsigned(begin, end, std::numeric_limits<std::uint64_t>::max(), index);
    row.Complain(word.data(), !is_number ? std::string(form)
                              : index < first
                                  ? fmt::format("{} of 1 or more (indexing_mode=1)", name)
                                  : fmt::format("{} up to {}{}", name, most,
                                                sizeof(Index) == 4 ? " (64-bit indices go further)" : ""));
  }
  return static_cast<Index>(index - first);
}

}  // namespace warren::data::internal
