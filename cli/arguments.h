// Reads the options of a command line in these forms: whole names, unambiguous abbreviations of long names,
// values after a blank, after "=" or directly after a short name, and several flag letters in one word.
// dmlc-submit, rabit-tracker and others read their options here, so that all of them accept the same
// forms and report mistakes in the same way. Does no I/O.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace warren::cli {

/// Thrown if the command line is invalid. `what()` is meant for the user.
class UsageError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class ValueUse {
  kNone,      ///< a flag
  kRequired,  ///< a value after a blank, after "=", or directly after a short name
  kOptional,  ///< a value, only after "="; empty if omitted
};

/// The names and the value of one option.
struct OptionForm {
  /// The names with their dashes: "--num-workers", "-n", "-np". Messages show the first.
  std::vector<std::string> names;
  ValueUse value = ValueUse::kNone;
  std::string value_name;  ///< the placeholder for the value in messages, e.g. "N"
  /// Whether text directly after a short name ("-n2") is the value only if it begins like a number. Only such
  /// options can have a value directly after a name of several letters ("-np2").
  bool is_number = false;
};

/// An option that was given. `form`: the option's index in ArgumentReader::forms(). `value`: empty for flags
/// and for omitted optional values. `source`: the place of an option in a job file, for messages about its
/// value, such as "job.yaml:3:9: port"; empty for options on command lines.
struct GivenOption {
  std::size_t form = 0;
  std::string value;
  std::string source = {};

  bool operator==(const GivenOption&) const = default;
};

class ArgumentReader {
 public:
  explicit ArgumentReader(std::vector<OptionForm> forms);

  /// Reads the options that begin at words[at], moves `at` past them and their values, and returns them in
  /// the order given. Stops at the first word that is not an option, at "--" and at the end. Values may look
  /// like options. Throws UsageError if an option is unknown or ambiguous, lacks its value, or has a value
  /// but takes none.
  std::vector<GivenOption> ReadOptions(const std::vector<std::string>& words, std::size_t& at) const;

  const std::vector<OptionForm>& forms() const { return forms_; }
  /// Returns the first name of the option that the user most likely meant by `name`: an option that `name`
  /// abbreviates; otherwise, if `name` has a single dash, the option with the same letter; otherwise the
  /// option whose long name needs the fewest edits. Empty if no name is close enough.
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
