// Manifests as text: written as YAML that people can read and edit, and read from YAML or JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace warren::submit {

/// Keeps the keys of an object in the order in which they were added, as people expect to see them.
using Json = nlohmann::ordered_json;

/// The documents, each behind a line "---". Text of several lines stands there as it is ("|"). Strings are
/// valid UTF-8.
std::string WriteYaml(const std::vector<Json>& documents);

/// The one document of a YAML or JSON file, an object. Throws std::runtime_error that names the file and the
/// line.
Json ReadYamlFile(const std::string& path);

/// `added` over `base`, as kubectl's strategic merge does it for pods: objects key by key; containers,
/// volumes and environment by name, mounts by path, ports by number; any other value, and any other list,
/// replaces; null removes. Unlike there, a variable's value replaces a reference, and a reference a value.
void MergeInto(Json& base, const Json& added);

}  // namespace warren::submit
