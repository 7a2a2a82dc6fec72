// Reads settings in the format of XGBoost's command line: `key = value` lines of a file and `key=value`
// arguments. Knows nothing about what the keys mean.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace warren::xgb_train {

/// One `key = value`, and where the user wrote it.
struct Setting {
  std::string key;
  std::string value;
  std::string origin;  ///< "train.conf:12" or "argument 'eta=1'", for messages
};

/// What the user wrote is wrong (as opposed to: what was tried went wrong). The program exits with 2.
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Parses the text of a configuration file; `name` is what messages call it.
///
/// One `key = value` a line, LF, CR LF or CR. A `#` outside quotes starts a comment; empty lines mean
/// nothing. A key or value that holds blanks or `#` stands in "..." or '...' (and cannot hold quotes).
/// Throws ConfigError naming file, line, what was found and what was expected.
std::vector<Setting> ParseConfig(std::string_view text, std::string_view name);

/// Reads and parses a configuration file. Throws ConfigError, also when the file cannot be read.
std::vector<Setting> ReadConfig(const std::string& path);

/// Parses `key=value` arguments. The value is everything behind the first '=', taken as it is: the
/// shell has already dealt with quotes. Throws ConfigError for an argument that is no `key=value`.
std::vector<Setting> ParseArguments(std::span<const std::string> arguments);

}  // namespace warren::xgb_train
