#include "cli/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace warren::cli {
namespace {

std::string_view WithoutDashes(std::string_view name) {
  return name.substr(std::min(name.find_first_not_of('-'), name.size()));
}

bool IsOption(std::string_view word) {
  return word.size() >= 2 && word[0] == '-' && word != "--";
}

bool BeginsAsNumber(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && text[0] >= '0' && text[0] <= '9';
}

/// The smallest number of insertions, deletions and replacements of characters that turn `a` into `b`
/// (Levenshtein distance).
std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

ArgumentReader::ArgumentReader(std::vector<OptionForm> forms) : forms_(std::move(forms)) {}

std::vector<GivenOption> ArgumentReader::ReadOptions(const std::vector<std::string>& words,
                                                     std::size_t& at) const {
  std::vector<GivenOption> given;
  while (at < words.size() && IsOption(words[at])) ReadOption(words, at, given);
  return given;
}

void ArgumentReader::ReadOption(const std::vector<std::string>& words, std::size_t& at,
                                std::vector<GivenOption>& given) const {
  const std::string& word = words[at];
  const std::size_t equals = word.find('=');
  const std::string typed = word.substr(0, equals);
  const OptionForm* form = FindName(typed);
  if (form == nullptr && typed.starts_with("--")) form = FindAbbreviation(typed);
  if (form == nullptr) {
    if (!word.starts_with("--") && ReadLetters(words, at, given)) return;
    const std::string_view nearest = Nearest(typed);
    throw UsageError(
        fmt::format("unknown option '{}'{}{}", typed, nearest.empty() ? "" : "; did you mean ", nearest));
  }
  ++at;
  if (form->value == ValueUse::kNone && equals != std::string::npos) {
    throw UsageError(fmt::format("{} takes no value", form->names.front()));
  }
  const bool follows = form->value == ValueUse::kRequired && equals == std::string::npos;
  std::string value = follows                       ? TakeValue(*form, words, at)
                      : equals != std::string::npos ? word.substr(equals + 1)
                                                    : std::string();
  given.push_back({PlaceOf(*form), std::move(value)});
}

/// Reads groups like "-n2", "-np2", "-qn2" and "-qn 2". Returns false, without reading anything, if the word
/// is not such a group.
bool ArgumentReader::ReadLetters(const std::vector<std::string>& words, std::size_t& at,
                                 std::vector<GivenOption>& given) const {
  const std::string_view word = words[at];
  std::vector<GivenOption> found;
  // A number may also follow a name of several letters directly: "-np2".
  const std::size_t digits = std::min(word.find_first_of("0123456789"), word.size());
  const OptionForm* const whole =
      digits > 2 && digits < word.size() ? FindName(word.substr(0, digits)) : nullptr;
  if (whole != nullptr && whole->value == ValueUse::kRequired && whole->is_number) {
    given.push_back({PlaceOf(*whole), std::string(word.substr(digits))});
    ++at;
    return true;
  }
  for (std::size_t i = 1; i < word.size(); ++i) {
    const OptionForm* const form = FindName(fmt::format("-{}", word[i]));
    if (form == nullptr || form->value == ValueUse::kOptional) return false;
    found.push_back({PlaceOf(*form), {}});
    if (form->value == ValueUse::kNone) continue;
    std::string_view rest = word.substr(i + 1);
    if (i > 1 && rest.starts_with('=')) rest.remove_prefix(1);  // "-qn=2"; ReadOption handles "-n=2"
    if (rest.empty()) {
      std::size_t next = at + 1;
      found.back().value = TakeValue(*form, words, next);
      at = next - 1;
    } else if (form->is_number && !BeginsAsNumber(rest)) {
      return false;
    } else {
      found.back().value = rest;
    }
    break;
  }
  ++at;
  given.insert(given.end(), found.begin(), found.end());
  return true;
}

std::string ArgumentReader::TakeValue(const OptionForm& form, const std::vector<std::string>& words,
                                      std::size_t& at) const {
  if (at == words.size()) {
    throw UsageError(fmt::format("{0} needs a value: {0} {1}", form.names.front(), form.value_name));
  }
  return words[at++];
}

const OptionForm* ArgumentReader::FindName(std::string_view name) const {
  const auto has_name = [&](const OptionForm& form) {
    return std::find(form.names.begin(), form.names.end(), name) != form.names.end();
  };
  const auto found = std::find_if(forms_.begin(), forms_.end(), has_name);
  return found == forms_.end() ? nullptr : &*found;
}

/// Returns the option that `name` abbreviates, or nullptr if no option fits. Throws UsageError if `name`
/// abbreviates several options.
const OptionForm* ArgumentReader::FindAbbreviation(std::string_view name) const {
  std::vector<std::string_view> meant;
  const OptionForm* found = nullptr;
  for (const OptionForm& form : forms_) {
    const auto begins = [&](const std::string& one) { return one.starts_with(name); };
    const auto fitting = std::find_if(form.names.begin(), form.names.end(), begins);
    if (fitting == form.names.end()) continue;
    meant.push_back(*fitting);
    found = &form;
  }
  if (meant.size() > 1) {
    throw UsageError(fmt::format("ambiguous option '{}': it could be {}", name, fmt::join(meant, ", ")));
  }
  return found;
}

std::string_view ArgumentReader::Nearest(std::string_view name) const {
  const std::string_view typed = WithoutDashes(name);
  // The long names without their dashes, each with the first name of its option.
  std::vector<std::pair<std::string_view, std::string_view>> names;
  for (const OptionForm& form : forms_) {
    for (const std::string& one : form.names) {
      if (one.starts_with("--")) names.emplace_back(WithoutDashes(one), form.names.front());
    }
  }
  for (const auto& [one, first] : names) {
    if (!typed.empty() && one.starts_with(typed)) return first;
  }
  const OptionForm* const letter = name.starts_with("--") ? nullptr : FindName(name.substr(0, 2));
  if (letter != nullptr) return letter->names.front();
  const auto nearer = [&](const auto& a, const auto& b) {
    return EditDistance(a.first, typed) < EditDistance(b.first, typed);
  };
  const auto nearest = std::min_element(names.begin(), names.end(), nearer);
  // A name that differs in more than about half of the typed letters would be a mere guess.
  const bool is_near =
      nearest != names.end() && EditDistance(nearest->first, typed) <= (typed.size() + 1) / 2;
  return is_near ? nearest->second : std::string_view();
}

}  // namespace warren::cli
