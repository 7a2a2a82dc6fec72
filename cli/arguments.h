// The options of a command line in every form that Python's argparse takes, too: whole names, unambiguous
// abbreviations of long ones, values after a blank, after "=" or right behind a letter, letters of flags in
// one word. All programs read their options by this, so that all take the same forms and say the same of
// mistakes. Pure functions of text.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace warren::cli {

/// The command line cannot be understood. `what()` is for the user.
class UsageError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class ValueUse {
  kNone,      ///< a flag
  kRequired,  ///< after a blank, after "=", or right behind a letter
  kOptional,  ///< only after "="; left out it is an empty one
};

/// One option as a command line may name it.
struct OptionForm {
  /// With their dashes, the one that messages show first: "--num-workers", "-n", "-np".
  std::vector<std::string> names;
  ValueUse value = ValueUse::kNone;
  std::string value_name;  ///< the placeholder of the value in messages: "N"
  /// What follows a letter in the same word is its value only if it begins as a number does: "-n2".
  bool is_number = false;
};

/// An option that was given, by its place among the forms. A flag has no value, nor has one whose optional
/// value was left out.
struct GivenOption {
  std::size_t form = 0;
  std::string value;

  bool operator==(const GivenOption&) const = default;
};

class ArgumentReader {
 public:
  explicit ArgumentReader(std::vector<OptionForm> forms);

  /// Reads the options that begin at words[at], moves `at` behind them and their values, and returns them in
  /// the order given. Returns at the first word that is no option, at "--" and at the end. Values may look
  /// like options. Throws UsageError for an option that is unknown, ambiguous, or lacks its value.
  std::vector<GivenOption> ReadOptions(const std::vector<std::string>& words, std::size_t& at) const;

  const std::vector<OptionForm>& forms() const { return forms_; }
  /// The first name of the option that a user most likely meant: one with a name that goes on where `name`
  /// ends, else that of its letter, else the fewest edits away.
  std::string_view Nearest(std::string_view name) const;

 private:
  const OptionForm* FindName(std::string_view name) const;
  const OptionForm* FindAbbreviation(std::string_view name) const;
  void ReadOption(const std::vector<std::string>& words, std::size_t& at,
                  std::vector<GivenOption>& given) const;
  bool ReadLetters(const std::vector<std::string>& words, std::size_t& at,
                   std::vector<GivenOption>& given) const;
  std::string TakeValue(const OptionForm& form, const std::vector<std::string>& words, std::size_t& at) const;
  std::size_t PlaceOf(const OptionForm& form) const {
    return static_cast<std::size_t>(&form - forms_.data());
  }

  std::vector<OptionForm> forms_;
};

}  // namespace warren::cli
