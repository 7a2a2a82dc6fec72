#include "cli/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "cli/arguments.h"

namespace warren::cli {
namespace {

constexpr int kExitUsage = 2;

using OtherNames = std::vector<std::pair<std::string, std::string>>;

void AppendForms(const CLI::App& app, const OtherNames& other_names, std::vector<OptionForm>& forms) {
  for (const CLI::Option* const option : app.get_options()) {
    if (!option->nonpositional()) continue;
    OptionForm form;
    for (const std::string& name : option->get_lnames()) form.names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) form.names.push_back("-" + name);
    for (const auto& [other, name] : other_names) {
      if (std::find(form.names.begin(), form.names.end(), name) != form.names.end())
        form.names.push_back(other);
    }
    form.value = option->get_items_expected_max() > 0 ? ValueUse::kRequired : ValueUse::kNone;
    form.value_name = "VALUE";
    form.is_number = true;
    const bool is_known = std::any_of(forms.begin(), forms.end(), [&](const OptionForm& one) {
      return one.names.front() == form.names.front();
    });
    if (!is_known) forms.push_back(std::move(form));  // each subcommand repeats --help
  }
}

ArgumentReader ReaderFor(const CLI::App& app, const CLI::App* subcommand, const OtherNames& other_names) {
  std::vector<OptionForm> forms;
  AppendForms(app, other_names, forms);
  if (subcommand != nullptr) AppendForms(*subcommand, other_names, forms);
  return ArgumentReader(std::move(forms));
}

/// Appends each option with its value as one word, "--name=value". An empty value becomes a separate word,
/// since CLI11 does not accept an empty value after "=".
void AppendOptions(const ArgumentReader& reader, const std::vector<GivenOption>& given,
                   std::vector<std::string>& words) {
  for (const GivenOption& one : given) {
    const OptionForm& form = reader.forms()[one.form];
    const std::string& name = form.names.front();
    if (form.value == ValueUse::kNone) {
      words.push_back(name);
    } else if (one.value.empty()) {
      words.insert(words.end(), {name, one.value});
    } else {
      words.push_back(fmt::format("{}={}", name, one.value));
    }
  }
}

}  // namespace

void Parse(CLI::App& app, int argc, const char* const* argv, const OtherNames& other_names) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  std::vector<std::string> understood;
  const CLI::App* subcommand = nullptr;
  ArgumentReader reader = ReaderFor(app, nullptr, other_names);
  for (std::size_t at = 0; at < words.size();) {
    AppendOptions(reader, reader.ReadOptions(words, at), understood);
    if (at == words.size()) break;
    const std::string& word = words[at++];
    understood.push_back(word);
    if (word == "--") {
      understood.insert(understood.end(), words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
      break;
    }
    if (subcommand == nullptr) {
      const auto named = app.get_subcommands([&](CLI::App* one) { return one->check_name(word); });
      if (named.empty()) continue;
      subcommand = named.front();
      reader = ReaderFor(app, subcommand, other_names);
    }
  }
  std::reverse(understood.begin(), understood.end());  // CLI11 takes words from the end
  app.parse(std::move(understood));
}

int ParseOrExplain(CLI::App& app, const std::string& program, int argc, const char* const* argv,
                   const OtherNames& other_names) {
  try {
    Parse(app, argc, argv, other_names);
    return -1;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  } catch (const UsageError& error) {
    fmt::print(stderr, "{0}: error: {1}\n{0}: --help lists the options\n", program, error.what());
    return kExitUsage;
  }
}

}  // namespace warren::cli
