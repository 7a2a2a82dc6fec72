// Manifests as text: writes YAML that people can read and edit, and reads YAML or JSON.
#pragma once

#include <string>
#include <vector>

#include "submit/options/yaml_text.h"

namespace warren::submit {

/// Returns the text of the documents (YamlText), each after a line "---".
std::string WriteYaml(const std::vector<Json>& documents);

/// Reads a YAML or JSON file, which must contain one document, an object. Otherwise, throws a
/// std::runtime_error that names the file and, if the syntax is wrong, the line.
Json ReadYamlFile(const std::string& path);

/// Merges `added` over `base` like kubectl's strategic merge for pods: objects key by key; lists of
/// containers, volumes, environment variables and image pull secrets by name, of mounts and devices by path,
/// and of ports by number. Any other list or value is replaced; null removes the member. Unlike in kubectl,
/// the value of an environment variable replaces a reference, and vice versa.
void MergeInto(Json& base, const Json& added);

}  // namespace warren::submit
