#include "submit/monitor/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

namespace warren::submit {
namespace {

bool IsPlain(char c) {
  return c >= ' ' && c <= '~' && c != '"' && c != '\\' && c != '<';
}

}  // namespace

void AppendJson(std::string& json, std::string_view text) {
  if (std::all_of(text.begin(), text.end(), IsPlain)) {
    json += '"';
    json += text;
    json += '"';
    return;
  }
  const std::string escaped =
      nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  for (const char c : escaped) {
    if (c == '<') {
      json += "\\u003c";
    } else {
      json += c;
    }
  }
}

void AppendJson(std::string& json, double number) {
  if (std::isfinite(number)) {
    fmt::format_to(std::back_inserter(json), "{}", number);
  } else {
    json += "null";
  }
}

void AppendJson(std::string& json, std::int64_t number) {
  fmt::format_to(std::back_inserter(json), "{}", number);
}

void AppendJson(std::string& json, std::uint64_t number) {
  fmt::format_to(std::back_inserter(json), "{}", number);
}

void AppendJson(std::string& json, bool value) {
  json += value ? "true" : "false";
}

}  // namespace warren::submit
