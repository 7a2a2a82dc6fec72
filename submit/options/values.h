// Functions that parse and store option values, for the option table and for the options of each cluster. If
// a value is invalid, they throw a std::runtime_error that says what is wrong with it.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "submit/options/options.h"
#include "submit/process/command.h"

namespace warren::submit {

/// The largest number that most options accept: enough for any machine, and small enough that computations in
/// milliseconds and bytes do not overflow.
inline constexpr int kMaxCount = 1'000'000;

/// Parses a whole number from `least` to `most`.
int ParseCount(const std::string& text, int least, int most);
/// Parses a size with its unit (k, m, g or t, in powers of 1024) to bytes: "512m", "4g", "1.5G", "2t",
/// "65536k".
std::uint64_t ParseMemorySize(const std::string& text);
std::string Lower(std::string text);

/// The possible values of an option, each with its name.
template <typename Value>
using Choices = std::vector<std::pair<std::string_view, Value>>;

/// Returns the value that `text` stands for, ignoring case. Throws a std::runtime_error that lists the
/// choices if `text` is not one of them.
template <typename Value>
Value Choose(const std::string& text, const Choices<Value>& choices) {
  const std::string wanted = Lower(text);
  std::string names;
  for (const auto& [name, value] : choices) {
    if (name == wanted) return value;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  }
  throw std::runtime_error(fmt::format("'{}' is not one of {}", text, names));
}

/// Stores the choice that the value names.
template <typename Value>
auto OneOf(Value Options::*member, std::type_identity_t<Choices<Value>> choices) {
  return [member, choices = std::move(choices)](Options& options, const std::string& value) {
    options.*member = Choose(value, choices);
  };
}

template <auto member>
void Flag(Options& options, const std::string&) {
  options.*member = true;
}

template <auto member>
void Text(Options& options, const std::string& value) {
  options.*member = value;
}

template <auto member>
void TextList(Options& options, const std::string& value) {
  (options.*member).push_back(value);
}

/// Appends the words of `value`, which are separated by blanks; blanks within a word must be quoted or
/// escaped (SplitWords). Throws std::runtime_error if a quote is not closed.
template <auto member>
void Words(Options& options, const std::string& value) {
  for (std::string& word : SplitWords(value)) (options.*member).push_back(std::move(word));
}

template <auto member, int least, int most>
void Count(Options& options, const std::string& value) {
  options.*member =
      static_cast<std::remove_reference_t<decltype(options.*member)>>(ParseCount(value, least, most));
}

template <auto member>
void Memory(Options& options, const std::string& value) {
  options.*member = ParseMemorySize(value);
}

}  // namespace warren::submit
