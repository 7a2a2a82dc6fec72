#include "data/text/libfm.h"

#include <optional>

#include "data/text/format.h"
#include "data/text/row_parser.h"

namespace warren::data {
namespace {

using internal::ReadIndex;
using internal::RowText;
using internal::RowWriter;

template <typename Index>
class LibFmParser {
 public:
  LibFmParser(std::string_view text, FirstIndex first, RowBlock<Index>& block)
      : text_(text), first_(static_cast<std::uint64_t>(first)), block_(block), writer_(block) {}

  void Run(const FaultHandler& on_fault) {
    internal::ReadLines(text_, writer_, on_fault,
                        [this](const char* begin, const char* end) { Row(begin, end); });
  }

 private:
  void Row(const char* begin, const char* end) {
    RowText row(text_.data(), begin, end);
    if (row.AtEnd()) return;
    writer_.Begin();
    const std::optional<float> weight = Label(row);
    const RowText entries = row;
    while (!row.AtEnd()) Entry(row);
    internal::RequireIndicesOnce(block_, entries);
    // The weight is set last, because the first weight of a block gives weight 1 to all earlier rows, and a
    // rejected row must not do that.
    if (weight) writer_.SetWeight(*weight);
    writer_.End();
  }

  /// Reads the label and returns the weight, if any.
  std::optional<float> Label(RowText& row) {
    const std::string_view word = row.Word();
    const std::string_view label = word.substr(0, word.find(':'));
    float value = 0;
    if (!ParseFloat(label.data(), label.data() + label.size(), value)) {
      row.Complain(word.data(), "label or label:weight, both of them decimal numbers");
    }
    if (!internal::IsLabel(label, value)) row.Complain(word.data(), std::string(internal::kLabelForm));
    writer_.AddLabel(value);
    return internal::ReadWeight(row, word);
  }

  void Entry(RowText& row) {
    constexpr std::string_view kForm = "field:index:value or field:index";
    const std::string_view word = row.Word();
    const char* const end = word.data() + word.size();
    const std::size_t field_size = word.find(':');
    if (field_size == std::string_view::npos) row.Complain(word.data(), std::string(kForm));
    const std::size_t second_colon = word.find(':', field_size + 1);
    const char* const field_end = word.data() + field_size;
    const char* const index_end = second_colon == std::string_view::npos ? end : word.data() + second_colon;
    const auto field = ReadIndex<Index>(row, word, word.data(), field_end, first_, kForm, "a field");
    const auto index = ReadIndex<Index>(row, word, field_end + 1, index_end, first_, kForm, "an index");
    float value = 1;
    if (index_end != end && !ParseFloat(index_end + 1, end, value)) {
      row.Complain(word.data(), "field:index:value with a decimal number as value");
    }
    writer_.AddEntry(field, index, value);
  }

  std::string_view text_;
  std::uint64_t first_;
  const RowBlock<Index>& block_;
  RowWriter<Index> writer_;
};

RowParser LibFmRows(const TextOptions& options, std::string_view /*first_row*/) {
  return RowParser(
      [first = FirstIndexOf(options)](std::string_view text, auto& block, const FaultHandler& on_fault) {
        ParseLibFm(text, first, block, on_fault);
      });
}

}  // namespace

extern const TextFormat kLibFmFormat;
constinit const TextFormat kLibFmFormat{.name = "libfm", .parser = LibFmRows, .comment = '#'};

template <typename Index>
void ParseLibFm(std::string_view text, FirstIndex first, RowBlock<Index>& block,
                const FaultHandler& on_fault) {
  LibFmParser<Index>(text, first, block).Run(on_fault);
}

template void ParseLibFm(std::string_view, FirstIndex, RowBlock<std::uint32_t>&, const FaultHandler&);
template void ParseLibFm(std::string_view, FirstIndex, RowBlock<std::uint64_t>&, const FaultHandler&);

}  // namespace warren::data
