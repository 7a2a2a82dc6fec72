#include "data/error.h"

#include <fmt/format.h>

#include <system_error>

namespace warren::data {
namespace {

bool EndsWord(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

}  // namespace

std::string Quote(std::string_view text, std::size_t position) {
  constexpr std::size_t kMostShown = 40;
  std::string shown;
  std::size_t at = position;
  for (; at < text.size() && !EndsWord(text[at]) && at - position < kMostShown; ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    shown += byte < 0x20 || byte >= 0x7F ? fmt::format("\\x{:02X}", byte) : std::string(1, text[at]);
  }
  if (shown.empty())
    return at < text.size() && (text[at] == ' ' || text[at] == '\t') ? "a blank" : "the end of the line";
  const bool whole = at == text.size() || EndsWord(text[at]);
  return fmt::format("'{}{}'", shown, whole ? "" : "...");
}

std::string Describe(std::string_view file, std::uint64_t line, std::string_view text, const Fault& fault) {
  std::size_t begin = fault.position;
  while (begin > 0 && text[begin - 1] != '\n' && text[begin - 1] != '\r') --begin;
  return fmt::format("{}:{}:{}: found {}, expected {}", file, line, fault.position - begin + 1,
                     Quote(text, fault.position), fault.expected);
}

std::string SystemFailure(std::string_view file, std::string_view doing, int error_number) {
  return fmt::format("{}: {} failed: {}", file, doing, std::generic_category().message(error_number));
}

}  // namespace warren::data
