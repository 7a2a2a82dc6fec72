// An option of dmlc-submit: a row of the table (table.h).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "submit/options/options.h"

namespace warren::submit {

struct Option {
  std::string_view name;           ///< with its dashes: "--num-workers"
  std::string_view value;          ///< placeholder for the value in the help; empty: a flag
  std::string_view default_value;  ///< as displayed; may be empty
  std::string help;                ///< a few sentences
  /// Stores a value in the options. Throws a std::runtime_error that says what is wrong with the value if it
  /// is invalid. If null, the value is stored in Options::texts.
  std::function<void(Options& options, const std::string& value)> store = nullptr;
  bool repeatable = false;
  std::vector<std::string_view> other_names = {};  ///< alternative names, e.g. from MXNet's launch.py
  std::string group = {};                          ///< heading in the help; set by the table
  /// Whether the value may be omitted; if given, it follows a "=". An omitted value is stored as an empty
  /// string.
  bool value_is_optional = false;
  std::vector<std::string> choices = {};  ///< the possible values, if `value` does not list them
  /// A regular expression for values in a form other than `value`, for the schema of job files.
  std::string_view other_form = {};
  /// Whether the option is not allowed in job files, because it requests something other than a job, or names
  /// a job file. Set by the table.
  bool only_on_command_line = false;
  /// Whether all clusters use the option, rather than only the clusters whose registry entries name it. Set
  /// by the table.
  bool for_every_cluster = false;
};

}  // namespace warren::submit
