#include "submit/options/job_file.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "submit/options/value_hint.h"
#include "submit/options/yaml_text.h"
#include "submit/process/command.h"

namespace warren::submit {
namespace {

constexpr std::string_view kCommandKey = "command";

/// The option's name without its dashes.
std::string_view KeyOf(std::string_view name) {
  return name.substr(name.find_first_not_of('-'));
}

/// Whether a shell would treat the word as an operator if it were not quoted.
bool IsOperator(std::string_view word) {
  constexpr std::array<std::string_view, 12> kOperators = {"|", "||", "|&", "&",  "&&",   ";",
                                                           "<", "<<", ">",  ">>", "2>&1", "2>"};
  return std::find(kOperators.begin(), kOperators.end(), word) != kOperators.end();
}

// --- reading ---------------------------------------------------------------------------------------------

class JobFileReader {
 public:
  JobFileReader(const OptionTable& table, const std::string& name) : table_(table), name_(name) {}

  JobDescription Read(const std::string& text) {
    for (const auto& entry : Load(text)) {
      CheckTag(entry.first);
      if (!entry.first.IsScalar()) Fail(entry.first, "expected the name of an option, or command");
      ReadEntry(entry.first, entry.second);
    }
    return std::move(job_);
  }

 private:
  [[noreturn]] void Fail(const YAML::Mark& mark, std::string_view what) const {
    throw UsageError(fmt::format("{}: {}", PlaceOf(mark), what));
  }
  [[noreturn]] void Fail(const YAML::Node& node, std::string_view what) const { Fail(node.Mark(), what); }
  std::string PlaceOf(const YAML::Mark& mark) const {
    return mark.is_null() ? name_ : fmt::format("{}:{}:{}", name_, mark.line + 1, mark.column + 1);
  }

  /// Returns the file's only document, a map. Throws UsageError if the text is anything else.
  YAML::Node Load(const std::string& text) const {
    YAML::Node document;
    try {
      CheckIsOne(text);
      document = YAML::Load(text);
    } catch (const YAML::Exception& error) {
      Fail(error.mark, fmt::format("not valid YAML: {}", error.msg));
    }
    if (document.IsNull()) {
      throw UsageError(fmt::format(
          "{}: the file is empty; it needs options, one per line, such as num-workers: 4", name_));
    }
    CheckTag(document);
    if (!document.IsMap()) Fail(document, "expected options, one per line, such as num-workers: 4");
    return document;
  }

  /// Throws UsageError if the text has more than one document.
  void CheckIsOne(const std::string& text) const {
    const std::optional<YamlPlace> second = SecondDocument(text);
    if (!second) return;
    YAML::Mark mark;
    mark.line = second->line;
    mark.column = second->column;
    Fail(mark, second->is_empty ? "not valid YAML: an option or a value should begin here"
                                : "a second document begins here; a job file has only one");
  }

  void CheckTag(const YAML::Node& node) const {
    const std::string& tag = node.Tag();
    if (tag.empty() || tag == "?" || tag == "!") return;  // nodes without an explicit tag
    Fail(node, fmt::format("the tag {} is not possible in a job file; remove it", tag));
  }

  void ReadEntry(const YAML::Node& key, const YAML::Node& value) {
    key_ = key.Scalar();
    std::string name = key_;
    std::replace(name.begin(), name.end(), '_', '-');
    if (name == kCommandKey) {
      CheckIsFirst(key, kCommandKey);
      ReadCommand(key, value);
      return;
    }
    const Option* const option = table_.Find("--" + name);
    if (option == nullptr) FailUnknown(key, name);
    if (option->only_on_command_line) {
      Fail(key, fmt::format("{}: this option is for command lines, not for job files", key_));
    }
    CheckIsFirst(key, option->name);
    ReadOption(*option, key, value);
  }

  [[noreturn]] void FailUnknown(const YAML::Node& key, const std::string& name) const {
    std::vector<cli::OptionForm> forms(1);
    forms.back().names = {fmt::format("--{}", kCommandKey)};
    for (const Option& option : table_.rows()) {
      if (option.only_on_command_line) continue;
      std::vector<std::string>& names = forms.emplace_back().names;
      names.emplace_back(option.name);
      names.insert(names.end(), option.other_names.begin(), option.other_names.end());
    }
    const std::string meant(cli::ArgumentReader(std::move(forms)).Nearest("--" + name));
    Fail(key, meant.empty()
                  ? fmt::format("{}: there is no such option; dmlc-submit --help lists them", key_)
                  : fmt::format("{}: there is no such option; did you mean {}?", key_, KeyOf(meant)));
  }

  void CheckIsFirst(const YAML::Node& key, std::string_view name) {
    const auto [first, is_new] = lines_.try_emplace(name, key.Mark().line + 1);
    if (!is_new) {
      Fail(key, fmt::format("{}: {} is already given in line {}; keep one of the two", key_, KeyOf(name),
                            first->second));
    }
  }

  void ReadOption(const Option& option, const YAML::Node& key, const YAML::Node& value) {
    CheckTag(value);
    const std::optional<bool> truth = Truth(value);
    const ValueKind kind = HintFor(option).kind;
    if (kind == ValueKind::kFlag && truth) {
      if (*truth) Add(option, value, "");
    } else if (option.value.empty()) {
      Fail(value.IsNull() ? key : value, fmt::format("{}: expected true or false", key_));
    } else if (value.IsSequence() && option.repeatable) {
      for (const YAML::Node& one : value) Add(option, one, Text(one, value));
    } else if (value.IsMap() && TakesMap(option)) {
      ReadMap(option, value);
    } else if (kind != ValueKind::kChoice && truth &&
               (value.Scalar() == "true" || value.Scalar() == "false")) {
      Fail(value, fmt::format("{}: expected a value, not {}; if that is the value, put it in quotes", key_,
                              value.Scalar()));
    } else {
      Add(option, value, Text(value, key));
    }
  }

  void ReadMap(const Option& option, const YAML::Node& map) {
    std::set<std::string> names;
    for (const auto& entry : map) {
      const std::string name = Text(entry.first, map);
      if (name.find('=') != std::string::npos)
        Fail(entry.first, fmt::format("{}: '{}' contains '='; a name cannot", key_, name));
      if (!names.insert(name).second)
        Fail(entry.first, fmt::format("{}: {} is given twice; keep one of the two", key_, name));
      Add(option, entry.first, fmt::format("{}={}", name, Text(entry.second, entry.first)));
    }
  }

  /// Adds a value that was given at `node`.
  void Add(const Option& option, const YAML::Node& node, std::string value) {
    const auto form = static_cast<std::size_t>(&option - table_.rows().data());
    job_.given.push_back({form, std::move(value), fmt::format("{}: {}", PlaceOf(node.Mark()), key_)});
  }

  void ReadCommand(const YAML::Node& key, const YAML::Node& value) {
    CheckTag(value);
    if (value.IsSequence()) {
      for (const YAML::Node& word : value) job_.command.push_back(Text(word, value));
    } else {
      try {
        job_.command = SplitWords(Text(value, key));
      } catch (const UsageError&) {
        throw;
      } catch (const std::runtime_error& error) {
        Fail(value, fmt::format("{}: {}", key_, error.what()));
      }
      const auto found = std::find_if(job_.command.begin(), job_.command.end(), IsOperator);
      if (found != job_.command.end()) {
        Fail(value,
             fmt::format("{0}: no shell reads '{1}'; write [sh, -c, '...'] to run a shell, or a list of "
                         "words to pass '{1}' to the program",
                         key_, *found));
      }
    }
    if (job_.command.empty()) Fail(value, fmt::format("{}: the command has no words", key_));
  }

  /// The value of an unquoted true or false, or of another word that YAML 1.1 reads as a Boolean value;
  /// nullopt for any other node.
  static std::optional<bool> Truth(const YAML::Node& node) {
    bool truth = false;
    if (!node.IsScalar() || node.Tag() == "!" || !YAML::convert<bool>::decode(node, truth))
      return std::nullopt;
    return truth;
  }

  /// The text of a scalar. `parent`: the key or container of the node, whose place is reported if the value
  /// is missing. Throws UsageError unless the node is a scalar without NUL characters.
  std::string Text(const YAML::Node& node, const YAML::Node& parent) const {
    CheckTag(node);
    if (node.IsNull()) {
      Fail(parent,
           fmt::format("{}: a value is missing; write \"\" for an empty one, \"null\" for that word", key_));
    }
    if (!node.IsScalar()) {
      Fail(node, fmt::format("{}: expected one value, not {}", key_,
                             node.IsSequence() ? "a list" : "keys with values of their own"));
    }
    if (node.Scalar().find('\0') != std::string::npos) {
      Fail(node, fmt::format("{}: a value cannot contain the character \\0", key_));
    }
    return node.Scalar();
  }

  const OptionTable& table_;
  const std::string& name_;
  std::string key_;  ///< the key that is being read, as written
  std::map<std::string_view, int> lines_;
  JobDescription job_;
};

// --- writing ---------------------------------------------------------------------------------------------

/// The JSON value of an option that is not repeatable.
Json ValueOf(const Option& option, const std::string& text) {
  const ValueKind kind = HintFor(option).kind;
  if (kind == ValueKind::kFlag && text.empty()) return true;
  if (kind == ValueKind::kFlag || kind == ValueKind::kInteger || kind == ValueKind::kNumber) {
    const Json number = Json::parse(text, nullptr, false);
    if (number.is_number() && number.dump() == text) return number;
  }
  return text;
}

}  // namespace

JobDescription ReadJobFile(const OptionTable& table, const std::string& text, const std::string& name) {
  return JobFileReader(table, name).Read(text);
}

JobDescription Merged(JobDescription file, const JobDescription& line) {
  std::erase_if(file.given, [&](const cli::GivenOption& one) {
    return std::any_of(line.given.begin(), line.given.end(),
                       [&](const cli::GivenOption& other) { return other.form == one.form; });
  });
  file.given.insert(file.given.end(), line.given.begin(), line.given.end());
  if (!line.command.empty()) file.command = line.command;
  return file;
}

std::string WriteJobFile(const OptionTable& table, const JobDescription& job) {
  std::map<std::size_t, std::vector<std::string>> values;
  for (const cli::GivenOption& one : job.given) values[one.form].push_back(one.value);
  Json file = Json::object();
  for (const auto& [form, texts] : values) {
    const Option& option = table.rows()[form];
    if (option.only_on_command_line) continue;
    file[std::string(KeyOf(option.name))] = option.repeatable ? Json(texts) : ValueOf(option, texts.back());
  }
  file[std::string(kCommandKey)] = job.command;
  try {
    return YamlText(file);
  } catch (const Json::type_error&) {
    throw UsageError("--save: a job file is UTF-8, and a value or a word of the command is not");
  }
}

}  // namespace warren::submit
