// Writes values as YAML that people can read and edit, and looks at the documents of a text: job files, and
// manifests for Kubernetes.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace warren::submit {

/// Keeps the members of an object in the order in which they were added, as people expect.
using Json = nlohmann::ordered_json;

/// The text of an object or a list. Text of several lines is written unchanged, as a block ("|"). Throws
/// Json::type_error if a string is not valid UTF-8.
std::string YamlText(const Json& value);

/// A place in a text, counted from 0.
struct YamlPlace {
  int line = 0;
  int column = 0;
  bool is_empty = false;  ///< nothing valid is there, such as after a stray comma
};
/// Where the second document of a text begins; std::nullopt if there is none. Throws YAML::Exception.
/// YAML::LoadAll never ends for a text with a stray comma, which it takes for endless empty documents.
std::optional<YamlPlace> SecondDocument(const std::string& text);

}  // namespace warren::submit
