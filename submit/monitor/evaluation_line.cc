#include "submit/monitor/evaluation_line.h"

#include <fast_float/fast_float.h>

#include <algorithm>

#include "wire/printable.h"
#include "wire/whole_number.h"

namespace warren::submit {
namespace {

/// A line with more columns is probably data, not an evaluation.
constexpr std::size_t kMostColumns = 64;
constexpr std::size_t kMostNameBytes = 128;

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::optional<double> Number(std::string_view text) {
  double value = 0;
  const auto [end, error] = fast_float::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  // Cross-validation prints "0.21+0.01": the mean and the standard deviation. Only the mean is used.
  if (end != text.data() + text.size() && *end != '+') return std::nullopt;
  return value;
}

std::optional<std::pair<std::string, double>> Metric(std::string_view column) {
  const std::size_t colon = column.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon > kMostNameBytes) return std::nullopt;
  const auto value = Number(Trimmed(column.substr(colon + 1)));
  if (!value) return std::nullopt;
  return std::pair(wire::PrintableLine(Trimmed(column.substr(0, colon))), *value);
}

/// Returns the columns of the text after "[12]". They are separated by tabs or, as in the output of XGBoost's
/// command line, by spaces.
std::vector<std::string_view> Columns(std::string_view text) {
  const char separator = text.find('\t') != std::string_view::npos ? '\t' : ' ';
  std::vector<std::string_view> columns;
  while (!text.empty() && columns.size() <= kMostColumns) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (const auto column = Trimmed(text.substr(0, end)); !column.empty()) columns.push_back(column);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return columns;
}

}  // namespace

std::optional<EvaluationLine> ParseEvaluation(std::string_view line) {
  line = Trimmed(line);
  // Finds the first brackets that contain only a number. Other brackets, e.g. around a time, may precede
  // them.
  while (!line.empty()) {
    const std::size_t open = line.find('[');
    if (open == std::string_view::npos) return std::nullopt;
    const std::size_t close = line.find(']', open);
    if (close == std::string_view::npos) return std::nullopt;
    const std::string_view inner = line.substr(open + 1, close - open - 1);
    EvaluationLine parsed;
    parsed.round = wire::WholeNumber<std::int64_t>(inner).value_or(-1);
    line.remove_prefix(close + 1);
    if (parsed.round < 0) continue;
    const auto columns = Columns(line);
    if (columns.empty() || columns.size() > kMostColumns) return std::nullopt;
    for (const std::string_view column : columns) {
      const auto metric = Metric(column);
      if (!metric) return std::nullopt;
      parsed.metrics.push_back(*metric);
    }
    return parsed;
  }
  return std::nullopt;
}

}  // namespace warren::submit
