// One pass over the bytes, no allocation while the text is good.
#include "examples/xgboost/xgb_train/libsvm_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

namespace warren::xgb_train {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr uint64_t kMaxIndex = 0xFFFFFFFEu;  // XGBoost counts columns in 32 bits
constexpr size_t kMaxWholeDigits = 19;       // XGBoost reads them into 64 bits without looking

bool IsLineEnd(char c) {
  return c == '\n' || c == '\r';
}
bool IsBlank(char c) {
  return c == ' ' || c == '\t';
}
bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

size_t LineEnd(std::string_view text, size_t from) {
  while (from < text.size() && !IsLineEnd(text[from])) ++from;
  return from;
}

// Where the first line of part `index` begins: at the cut, or behind the line the cut falls into.
size_t ShareBegin(std::string_view text, Share share) {
  const auto cut =
      static_cast<size_t>(static_cast<unsigned __int128>(text.size()) * static_cast<unsigned>(share.index) /
                          static_cast<unsigned>(share.count));
  if (cut == 0) return 0;
  const size_t end = LineEnd(text, cut - 1);
  return std::min(end + 1, text.size());
}

size_t LineNumber(std::string_view text, size_t position) {
  size_t number = 1;
  for (size_t i = 0; i < position; ++i) {
    const bool carriage_return_alone = text[i] == '\r' && !(i + 1 < text.size() && text[i + 1] == '\n');
    if (text[i] == '\n' || carriage_return_alone) ++number;
  }
  return number;
}

uint64_t Mix(uint64_t value) {
  value = (value ^ (value >> 32)) * 0x9FB21C651E98DF25u;
  return value ^ (value >> 29);
}

uint64_t HashRow(std::string_view row) {
  uint64_t hash = row.size();
  for (; row.size() >= sizeof(uint64_t); row.remove_prefix(sizeof(uint64_t))) {
    uint64_t word = 0;
    std::memcpy(&word, row.data(), sizeof(word));
    hash = Mix(hash ^ word);
  }
  uint64_t tail = 0;
  std::memcpy(&tail, row.data(), row.size());
  return Mix(hash ^ tail);
}

// Walks over one line. Complaints are made of the cursor's place.
class RowChecker {
 public:
  RowChecker(std::string_view text, std::string_view name, uint64_t least_index)
      : text_(text), name_(name), least_index_(least_index) {}

  // Checks the line [begin, end) and says whether it held a row.
  bool Check(size_t begin, size_t end) {
    at_ = begin;
    end_ = end;
    SkipBlanks();
    if (AtEnd()) return false;
    CheckLabel();
    CheckQueryId();
    while (!AtEnd()) CheckFeature();
    return true;
  }

 private:
  bool AtEnd() const { return at_ == end_ || text_[at_] == '#'; }
  bool At(char c) const { return at_ < end_ && text_[at_] == c; }
  bool AtWordEnd() const { return at_ == end_ || IsBlank(text_[at_]) || text_[at_] == '#'; }
  void SkipBlanks() {
    while (at_ < end_ && IsBlank(text_[at_])) ++at_;
  }
  size_t SkipDigits() {
    const size_t begin = at_;
    while (at_ < end_ && IsDigit(text_[at_])) ++at_;
    return at_ - begin;
  }

  void CheckLabel() {
    const size_t word = at_;
    if (!SkipNumber()) Complain(word, "a label, which is a decimal number");
    const bool weighted = At(':');
    if (weighted) ++at_;
    if (weighted && !SkipNumber()) Complain(word, "label:weight, both decimal numbers");
    if (!AtWordEnd()) Complain(word, "label or label:weight, decimal numbers");
    RequireAlike(weights_, weighted, word, "label:weight", "a label without a weight");
    SkipBlanks();
  }

  void CheckQueryId() {
    const size_t word = at_;
    const bool has_query = text_.substr(at_, end_ - at_).starts_with("qid:");
    if (has_query) {
      at_ += 4;
      const size_t digits = SkipDigits();
      if (digits == 0 || digits > kMaxWholeDigits - 1 || !AtWordEnd())
        Complain(word, "qid:n with a whole number n of at most 18 digits");
    }
    RequireAlike(queries_, has_query, word, "qid:n behind the label", "no qid");
    SkipBlanks();
  }

  void CheckFeature() {
    const size_t word = at_;
    CheckIndex(word);
    if (!At(':')) Complain(word, "index:value");
    ++at_;
    if (!SkipNumber() || !AtWordEnd()) Complain(word, "index:value with a decimal number as value");
    SkipBlanks();
  }

  void CheckIndex(size_t word) {
    uint64_t index = 0;
    const auto [stop, error] = std::from_chars(text_.data() + at_, text_.data() + end_, index);
    if (error == std::errc::invalid_argument) Complain(word, "index:value");
    const uint64_t most_index = kMaxIndex + least_index_;
    if (error != std::errc() || index < least_index_ || index > most_index) {
      Complain(word, fmt::format("an index from {} to {}", least_index_, most_index));
    }
    at_ = static_cast<size_t>(stop - text_.data());
  }

  // [+-] digits [. digits] [e [+-] digits], at least one digit before the exponent.
  bool SkipNumber() {
    if (At('+') || At('-')) ++at_;
    const size_t begin = at_;
    const size_t whole = SkipDigits();
    size_t fraction = 0;
    if (At('.')) ++at_, fraction = SkipDigits();
    if (whole + fraction == 0 || whole > kMaxWholeDigits) return false;
    if (!At('e') && !At('E')) return true;
    ++at_;
    if (At('+') || At('-')) ++at_;
    return SkipDigits() > 0 && FitsFloat(begin);
  }

  // Too small becomes zero, as everywhere; too large would become another number.
  bool FitsFloat(size_t begin) const {
    float value = 0;
    const auto result = std::from_chars(text_.data() + begin, text_.data() + at_, value);
    if (result.ec != std::errc::result_out_of_range) return true;
    double wide = 0;
    const auto wide_result = std::from_chars(text_.data() + begin, text_.data() + at_, wide);
    return wide_result.ec == std::errc()
               ? wide < 1
               : text_.substr(begin, at_ - begin).find('-') != std::string_view::npos;
  }

  // The first row decides for all: XGBoost reads past its arrays when only some rows have the field.
  void RequireAlike(std::optional<bool>& first, bool present, size_t word, std::string_view with,
                    std::string_view without) {
    if (!first) first = present;
    if (*first != present)
      Complain(word, fmt::format("{}, like in the rows before", *first ? with : without));
  }

  [[noreturn]] void Complain(size_t word, std::string_view expected) const {
    size_t line = word;
    while (line > 0 && !IsLineEnd(text_[line - 1])) --line;
    size_t end = word;
    while (end < end_ && !IsBlank(text_[end])) ++end;
    throw DataError(fmt::format("{}:{}:{}: found {}, expected {}", name_, LineNumber(text_, line),
                                word - line + 1, Quote(text_.substr(word, end - word)), expected));
  }

  // Binary junk must not reach the terminal, nor a line of a megabyte.
  static std::string Quote(std::string_view word) {
    constexpr size_t kMaxShown = 40;
    if (word.empty()) return "the end of the line";
    std::string shown = "'";
    for (const char c : word.substr(0, kMaxShown)) {
      const auto byte = static_cast<unsigned char>(c);
      shown += byte < 0x20 || byte >= 0x7F ? fmt::format("\\x{:02X}", byte) : std::string(1, c);
    }
    return shown + (word.size() > kMaxShown ? "...'" : "'");
  }

  std::string_view text_;
  std::string_view name_;
  uint64_t least_index_;
  size_t at_ = 0;
  size_t end_ = 0;
  std::optional<bool> weights_;
  std::optional<bool> queries_;
};

}  // namespace

LibsvmSummary CheckLibsvm(std::string_view text, std::string_view name, Share share, LineFormat format) {
  LibsvmSummary summary;
  RowChecker checker(text, name, format == LineFormat::kLibsvmFromOne ? 1 : 0);
  const size_t stop = ShareBegin(text, {share.index + 1, share.count});
  size_t begin = ShareBegin(text, share);
  if (begin == 0 && text.starts_with(kByteOrderMark)) begin = kByteOrderMark.size();
  while (begin < stop) {
    const size_t end = LineEnd(text, begin);
    const bool is_row = format == LineFormat::kOtherLines ? end > begin : checker.Check(begin, end);
    if (is_row) {
      ++summary.rows;
      summary.digest += HashRow(text.substr(begin, end - begin));
    }
    begin = end + 1;
  }
  return summary;
}

}  // namespace warren::xgb_train
