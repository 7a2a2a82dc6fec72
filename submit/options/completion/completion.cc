#include "submit/options/completion/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace warren::submit {

std::vector<std::string_view> NamesOf(const Option& option) {
  std::vector<std::string_view> names = {option.name};
  names.insert(names.end(), option.other_names.begin(), option.other_names.end());
  return names;
}

std::string WithJoinedValues(const OptionTable& table, std::string_view script, std::string_view between,
                             std::string_view quotes) {
  std::vector<std::string> patterns;
  std::vector<std::string> names;
  for (const Option& option : table.rows()) {
    if (HintFor(option).kind == ValueKind::kFlag) continue;
    for (const std::string_view name : NamesOf(option)) {
      if (name.size() == 2) patterns.push_back(fmt::format("{0}{1}?*{0}", quotes, name));
      if (name.size() > 2 && !name.starts_with("--")) names.push_back(fmt::format("{0}{1}{0}", quotes, name));
    }
  }
  std::string text(script);
  for (const auto& [mark, words] : {std::pair{std::string_view("@NAMES_LIKE_JOINED@"), &names},
                                    {std::string_view("@JOINED@"), &patterns}}) {
    text.replace(text.find(mark), mark.size(), fmt::format("{}", fmt::join(*words, between)));
  }
  return text;
}

std::string ShortHelp(const Option& option) {
  const std::size_t end = std::min(option.help.find(". "), option.help.find(": "));
  std::string text = option.help.substr(0, end);
  while (!text.empty() && (text.back() == '.' || text.back() == ':')) text.pop_back();
  return text;
}

std::string CompletionScript(const OptionTable& table, Shell shell) {
  switch (shell) {
    case Shell::kBash:
      return BashCompletion(table);
    case Shell::kZsh:
      return ZshCompletion(table);
    case Shell::kFish:
      break;
  }
  return FishCompletion(table);
}

}  // namespace warren::submit
