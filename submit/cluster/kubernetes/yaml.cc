#include "submit/cluster/kubernetes/yaml.h"

#include <fast_float/fast_float.h>
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "submit/process/whole_file.h"

namespace warren::submit {
namespace {

// --- reading ---------------------------------------------------------------------------------------------

bool Parses(std::string_view text, std::int64_t& number, int base) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc{} && end == text.data() + text.size();
}

/// Parses a number. Rejects infinity and NaN, which JSON does not have.
bool Parses(std::string_view text, double& number) {
  const auto [end, error] = fast_float::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() && std::isfinite(number);
}

/// Parses an integer in the syntax of YAML 1.1 or 1.2: 12, 0o14, 014, 0xc, 0b1100. Returns nullopt if `text`
/// is anything else.
std::optional<std::int64_t> WholeNumber(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  int base = 10;
  constexpr std::array<std::pair<std::string_view, int>, 4> kPrefixes = {
      {{"0x", 16}, {"0o", 8}, {"0b", 2}, {"0", 8}}};
  for (const auto& [prefix, its_base] : kPrefixes) {
    if (!text.starts_with(prefix) || text.size() == prefix.size()) continue;
    base = its_base;
    text.remove_prefix(prefix.size());
    break;
  }
  std::int64_t number = 0;
  if (text.starts_with('-') || !Parses(text, number, base)) return std::nullopt;
  return negative ? -number : number;
}

/// The value of an unquoted scalar as kubectl reads it, i.e. according to YAML 1.1.
Json PlainScalar(const std::string& text) {
  for (const char* const word : {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"}) {
    if (text == word) return true;
  }
  for (const char* const word : {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"}) {
    if (text == word) return false;
  }
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return nullptr;
  if (const auto whole = WholeNumber(text)) return *whole;
  double number = 0;
  const bool begins = std::string_view("-.0123456789").find(text.front()) != std::string_view::npos;
  if (begins && Parses(text, number)) return number;
  return text;
}

Json FromYaml(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Scalar:
      return node.Tag() == "!" || node.Tag() == "tag:yaml.org,2002:str" ? Json(node.Scalar())
                                                                        : PlainScalar(node.Scalar());
    case YAML::NodeType::Sequence: {
      Json list = Json::array();
      for (const YAML::Node& element : node) list.push_back(FromYaml(element));
      return list;
    }
    case YAML::NodeType::Map: {
      Json object = Json::object();
      for (const auto& entry : node) {
        if (!entry.first.IsScalar() || entry.first.Scalar() == "<<") {
          throw YAML::RepresentationException(entry.first.Mark(), "keys must be scalars");
        }
        object[entry.first.Scalar()] = FromYaml(entry.second);
      }
      return object;
    }
    default:
      return nullptr;
  }
}

/// The member by which the elements of the list named `key` are matched; empty if such lists are replaced as
/// a whole.
std::string_view MergeKey(std::string_view key) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kKeys = {{
      {"containers", "name"},
      {"initContainers", "name"},
      {"volumes", "name"},
      {"env", "name"},
      {"imagePullSecrets", "name"},
      {"volumeMounts", "mountPath"},
      {"volumeDevices", "devicePath"},
      {"ports", "containerPort"},
  }};
  for (const auto& [list, merge_key] : kKeys) {
    if (list == key) return merge_key;
  }
  return {};
}

void MergeLists(Json& base, const Json& added, const std::string& key) {
  const std::size_t before = base.size();
  for (const Json& element : added) {
    bool merged = false;
    for (std::size_t i = 0; i < before && !merged; ++i) {
      merged = element.is_object() && base[i].is_object() && element.contains(key) && base[i].contains(key) &&
               element[key] == base[i][key];
      if (!merged) continue;
      // Kubernetes rejects a variable that has both a value and a reference.
      if (element.contains("value")) base[i].erase("valueFrom");
      if (element.contains("valueFrom")) base[i].erase("value");
      MergeInto(base[i], element);
    }
    if (!merged) base.push_back(element);
  }
}

}  // namespace

std::string WriteYaml(const std::vector<Json>& documents) {
  std::string text;
  for (const Json& document : documents) {
    text += "---\n";
    text += YamlText(document);
  }
  return text;
}

Json ReadYamlFile(const std::string& path) {
  try {
    const std::string text = ReadWholeFile(path);
    if (const auto second = SecondDocument(text)) {
      throw std::runtime_error(second->is_empty
                                   ? fmt::format("'{}', line {}: not valid YAML", path, second->line + 1)
                                   : fmt::format("'{}', line {}: a second document begins here, expected one",
                                                 path, second->line + 1));
    }
    const YAML::Node document = YAML::Load(text);
    if (document.IsMap()) return FromYaml(document);
  } catch (const YAML::Exception& error) {
    throw std::runtime_error(
        fmt::format("'{}', line {}: not valid YAML: {}", path, error.mark.line + 1, error.msg));
  }
  throw std::runtime_error(fmt::format("'{}' is not a manifest: expected an object", path));
}

void MergeInto(Json& base, const Json& added) {
  if (!base.is_object() || !added.is_object()) {
    base = added;
    return;
  }
  for (const auto& [key, value] : added.items()) {
    const std::string_view merge_key = MergeKey(key);
    if (value.is_null()) {
      base.erase(key);
    } else if (base.contains(key) && base[key].is_array() && value.is_array() && !merge_key.empty()) {
      MergeLists(base[key], value, std::string(merge_key));
    } else if (base.contains(key)) {
      MergeInto(base[key], value);
    } else {
      base[key] = value;
    }
  }
}

}  // namespace warren::submit
