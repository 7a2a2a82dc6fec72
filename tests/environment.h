// Environment variables for code that looks them up through wire::LookUp.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "wire/variables.h"

namespace warren {

using Environment = std::map<std::string, std::string>;

inline wire::LookUp LookUpIn(Environment environment) {
  return [environment = std::move(environment)](const char* name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
  };
}

}  // namespace warren
