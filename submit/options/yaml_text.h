// Writes values as YAML that people can read and edit, for job files and Kubernetes manifests, and finds a
// second document in YAML text.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace warren::submit {

/// A JSON value whose objects keep their members in the order in which they were added.
using Json = nlohmann::ordered_json;

/// Returns an object or a list as YAML. A string of several lines is written unchanged, as a block ("|"), if
/// possible. Throws Json::type_error if a string is not valid UTF-8.
std::string YamlText(const Json& value);

/// A place in a text. Lines and columns are counted from 0.
struct YamlPlace {
  int line = 0;
  int column = 0;
  bool is_empty = false;  ///< nothing can be read there, e.g. because of a stray comma
};
/// The place where the second document of a text begins; std::nullopt if none exists. Throws
/// YAML::Exception if the first document is not valid YAML. (YAML::LoadAll does not terminate for text with a
/// stray comma, which it reads as an endless sequence of empty documents.)
std::optional<YamlPlace> SecondDocument(const std::string& text);

}  // namespace warren::submit
