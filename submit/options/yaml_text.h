// Writes values as YAML that people can read and edit: job files, and manifests for Kubernetes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace warren::submit {

/// Keeps the members of an object in the order in which they were added, as people expect.
using Json = nlohmann::ordered_json;

/// The text of an object or a list. Text of several lines is written unchanged, as a block ("|"). Throws
/// Json::type_error if a string is not valid UTF-8.
std::string YamlText(const Json& value);

}  // namespace warren::submit
