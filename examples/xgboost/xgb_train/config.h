// Reads settings in the format of XGBoost's command line: `key = value` lines in a file, and `key=value`
// arguments. The keys are not interpreted.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace warren::xgb_train {

/// A `key = value` setting, and where the user wrote it.
struct Setting {
  std::string key;
  std::string value;
  std::string origin;  ///< "train.conf:12" or "argument 'eta=1'", for messages
};

/// A mistake in the user's configuration, as opposed to a failure of the run. The program exits with 2.
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Parses the text of a configuration file; `name` is its name in messages.
///
/// Each line, ended by LF, CR LF or CR, has one `key = value`. A `#` outside quotes starts a comment; empty
/// lines are ignored. A key or value that contains blanks, quotes or `#`, or a key that contains `=`, is
/// written in "..." or '...', and cannot contain the enclosing quote. Throws ConfigError naming file, line,
/// what was found and what was expected.
std::vector<Setting> ParseConfig(std::string_view text, std::string_view name);

/// Reads and parses a configuration file. Throws ConfigError for mistakes in it or if it cannot be read.
std::vector<Setting> ReadConfig(const std::string& path);

/// Parses `key=value` arguments. The value is everything after the first '=', unchanged: the shell has
/// already handled quotes. Throws ConfigError for an argument that is not `key=value`.
std::vector<Setting> ParseArguments(std::span<const std::string> arguments);

/// Reads the settings of a command line: those of the configuration file, which the first argument names
/// unless it is itself a setting, then those of the arguments.
std::vector<Setting> ReadSettings(std::span<const std::string> arguments);

}  // namespace warren::xgb_train
