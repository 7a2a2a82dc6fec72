#include "data/text/libsvm.h"

#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "data/text/format.h"
#include "data/text/number.h"
#include "data/text/row_parser.h"
#include "data/text/simd/kernels.h"

namespace warren::data {
namespace {

using internal::IsLineEnd;
using internal::RowText;
using internal::RowWriter;

constexpr std::string_view kQueryPrefix = "qid:";

template <typename Index>
class PlainParser {
 public:
  PlainParser(std::string_view text, FirstIndex first, RowBlock<Index>& block, const FaultHandler& on_fault,
              std::optional<bool> has_queries)
      : text_(text),
        first_(static_cast<std::uint64_t>(first)),
        block_(block),
        writer_(block),
        on_fault_(on_fault),
        has_queries_(has_queries) {}

  /// Parses or skips the row that begins at `at`; returns the position after its line end.
  const char* Row(const char* at) {
    return internal::ReadLine(text_, at, writer_, on_fault_, [this](const char* begin, const char* end) {
      RowText row(text_.data(), begin, end);
      if (row.AtEnd()) return;
      writer_.Begin();
      const std::optional<float> weight = Label(row);
      Query(row);
      const RowText features = row;
      while (!row.AtEnd()) Feature(row);
      internal::RequireIndicesOnce(block_, features);
      // The weight is set last, because the first weight of a block gives weight 1 to all earlier rows, and a
      // rejected row must not do that.
      if (weight) writer_.SetWeight(*weight);
      writer_.End();
    });
  }

 private:
  /// Reads the labels and returns the weight, if any.
  std::optional<float> Label(RowText& row) {
    const std::string_view word = row.Word();
    std::string_view labels = word.substr(0, word.find(':'));
    for (bool more = true; more;) {
      const std::size_t comma = labels.find(',');
      const std::string_view label = labels.substr(0, comma);
      float value = 0;
      if (!ParseFloat(label.data(), label.data() + label.size(), value)) {
        row.Complain(word.data(), "label, label:weight or label,label..., all of them decimal numbers");
      }
      if (!internal::IsLabel(label, value)) row.Complain(word.data(), std::string(internal::kLabelForm));
      writer_.AddLabel(value);
      more = comma != std::string_view::npos;
      if (more) labels.remove_prefix(comma + 1);
    }
    return internal::ReadWeight(row, word);
  }

  void Query(RowText& row) {
    const bool has_query = row.StartsWith(kQueryPrefix);
    if (!has_query && has_queries_.value_or(writer_.MustHaveQid()))
      row.Complain(row.at(), "qid:n after the label, as in the rows before");
    if (!has_query) return;
    if (!has_queries_.value_or(writer_.MayHaveQid())) row.Complain(row.at(), "no qid, as in the rows before");
    const std::string_view word = row.Word();
    std::uint64_t qid = 0;
    if (!ParseUnsigned(word.data() + kQueryPrefix.size(), word.data() + word.size(),
                       std::numeric_limits<std::uint64_t>::max(), qid)) {
      row.Complain(word.data(), "qid:n, n a whole number from 0 to 2^64 - 1");
    }
    writer_.SetQid(qid);
  }

  void Feature(RowText& row) {
    const std::string_view word = row.Word();
    const std::size_t colon = word.find(':');
    const char* const index_end = word.data() + (colon == std::string_view::npos ? word.size() : colon);
    const Index index = internal::ReadIndex<Index>(row, word, word.data(), index_end, first_,
                                                   "index:value or an index alone", "an index");
    float value = 1;
    if (colon != std::string_view::npos && !ParseFloat(index_end + 1, word.data() + word.size(), value)) {
      row.Complain(word.data(), "index:value with a decimal number as value");
    }
    writer_.AddEntry(index, value);
  }

  std::string_view text_;
  std::uint64_t first_;
  const RowBlock<Index>& block_;
  RowWriter<Index> writer_;
  const FaultHandler& on_fault_;
  std::optional<bool> has_queries_;  ///< nullopt: the first row of the block decides
};

/// Whether any row from `begin` on has an index twice.
template <typename Index>
bool SomeRowRepeats(const RowBlock<Index>& block, std::size_t begin) {
  for (std::size_t row = begin; row < block.rows(); ++row) {
    const std::size_t first = block.offsets[row];
    if (internal::FindRepeated(std::span(block.indices.data() + first, block.offsets[row + 1] - first)))
      return true;
  }
  return false;
}

/// Whether a row from `begin` on may have a label or weight that the plain parser rejects: a label or weight
/// that is not finite, or a negative weight.
template <typename Index>
bool SomeLabelIsOdd(const RowBlock<Index>& block, std::size_t begin) {
  // The sum is 0 if all labels are finite, otherwise NaN. It needs no branch per row.
  float not_finite = 0;
  for (std::size_t row = begin; row < block.labels.size(); ++row) not_finite += block.labels[row] * 0;
  bool is_odd = std::isnan(not_finite);
  for (std::size_t row = begin; row < block.weights.size(); ++row)
    is_odd |= !internal::IsWeight(block.weights[row]);
  return is_odd;
}

/// Reserves capacity for as many rows and entries as `bytes` of text can contain. Until it is written, the
/// capacity takes only address space.
template <typename Index>
void Reserve(RowBlock<Index>& block, std::size_t bytes) {
  // The shortest row is "0\n", the shortest entry " 1".
  const std::size_t most = bytes / 2 + 1;
  block.offsets.make_room(most);
  block.labels.make_room(most);
  block.indices.make_room(most);
  block.values.make_room(most);
  if (!block.weights.empty()) block.weights.make_room(most);
  if (!block.qids.empty()) block.qids.make_room(most);
}

/// Returns the query of a row as QueryOf does. It is in the word after the label: "qid:7".
std::optional<std::string> QueryOfRow(std::string_view text) {
  RowText row(text.data(), text.data(), text.data() + text.size());
  if (row.AtEnd()) return std::nullopt;
  row.Word();
  return row.StartsWith(kQueryPrefix) ? internal::QueryName(row.Word().substr(kQueryPrefix.size()))
                                      : std::string();
}

/// Whether rows have query ids, according to the first row; nullopt if the first row is unknown or bad.
std::optional<bool> HasQueries(std::string_view first_row) {
  const auto query = QueryOfRow(first_row);
  return query ? std::optional(!query->empty()) : std::nullopt;
}

QueryOf LibSvmQueries(const TextOptions& /*options*/, std::string_view first_row) {
  const bool has_queries = HasQueries(first_row).value_or(false);
  return [has_queries](std::string_view row) {
    auto query = QueryOfRow(row);
    if (has_queries && query && query->empty()) query.reset();  // a bad row
    return query;
  };
}

RowParser LibSvmRows(const TextOptions& options, std::string_view first_row) {
  return RowParser([first = FirstIndexOf(options), has_queries = HasQueries(first_row)](
                       std::string_view text, auto& block, const FaultHandler& on_fault) {
    ParseLibSvm(text, first, block, on_fault, has_queries);
  });
}

}  // namespace

extern const TextFormat kLibSvmFormat;
constinit const TextFormat kLibSvmFormat{
    .name = "libsvm", .parser = LibSvmRows, .queries = LibSvmQueries, .comment = '#'};

template <typename Index>
void ParseLibSvmPlainly(std::string_view text, FirstIndex first, RowBlock<Index>& block,
                        const FaultHandler& on_fault, std::optional<bool> has_queries) {
  PlainParser<Index> parser(text, first, block, on_fault, has_queries);
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at != end;) at = parser.Row(at);
}

template <typename Index>
void ParseLibSvm(std::string_view text, FirstIndex first, RowBlock<Index>& block,
                 const FaultHandler& on_fault, std::optional<bool> has_queries) {
  const simd::Kernels& kernels = simd::Best();
  const auto run = simd::LibSvm<Index>(kernels);
  if (run == nullptr) return ParseLibSvmPlainly(text, first, block, on_fault, has_queries);
  PlainParser<Index> parser(text, first, block, on_fault, has_queries);
  const char* const end = text.data() + text.size();
  // The kernels search for line ends without checking for the end of the text, so a last line without a line
  // end is left to the plain parser.
  const char* last_line = end;
  while (last_line != text.data() && !IsLineEnd(last_line[-1])) --last_line;
  const char* at = text.data();
  while (at != end) {
    // The kernels need an earlier row, which determines whether rows have weights and qids, and do not read
    // rows into a block with label offsets. In both cases the plain parser reads the row.
    const bool known = !block.empty() && block.label_offsets.empty();
    if (known && at < last_line) {
      Reserve(block, static_cast<std::size_t>(last_line - at));
      const std::size_t rows = block.rows();
      const std::uint64_t columns = block.columns;
      const Index least_index = block.least_index;
      simd::LibSvmRows<Index> out{
          .at = at,
          .end = last_line,
          .first = static_cast<Index>(first),
          .rows = rows,
          .entries = block.entries(),
          .offsets = block.offsets.data(),
          .indices = block.indices.data(),
          .values = block.values.data(),
          .labels = block.labels.data(),
          .weights = block.weights.empty() ? nullptr : block.weights.data(),
          .qids = block.qids.empty() ? nullptr : block.qids.data(),
          .columns = block.columns,
          .least = block.least_index,
          .ascending = true,
      };
      run(out);
      const char* const begin = std::exchange(at, out.at);
      block.offsets.resize(out.rows + 1);
      block.labels.resize(out.rows);
      block.indices.resize(out.entries);
      block.values.resize(out.entries);
      if (!block.weights.empty()) block.weights.resize(out.rows);
      if (!block.qids.empty()) block.qids.resize(out.rows);
      block.columns = out.columns;
      block.least_index = out.least;
      if ((!out.ascending && SomeRowRepeats(block, rows)) || SomeLabelIsOdd(block, rows)) {
        // The plain parser reads these rows again, and reports the bad ones.
        block.Truncate(rows);
        block.columns = columns;
        block.least_index = least_index;
        for (const char* row = begin; row != at;) row = parser.Row(row);
      }
    }
    if (at != end) at = parser.Row(at);
  }
}

template void ParseLibSvm(std::string_view, FirstIndex, RowBlock<std::uint32_t>&, const FaultHandler&,
                          std::optional<bool>);
template void ParseLibSvm(std::string_view, FirstIndex, RowBlock<std::uint64_t>&, const FaultHandler&,
                          std::optional<bool>);
template void ParseLibSvmPlainly(std::string_view, FirstIndex, RowBlock<std::uint32_t>&, const FaultHandler&,
                                 std::optional<bool>);
template void ParseLibSvmPlainly(std::string_view, FirstIndex, RowBlock<std::uint64_t>&, const FaultHandler&,
                                 std::optional<bool>);

}  // namespace warren::data
