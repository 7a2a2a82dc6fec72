// Generates the text of --help, docs/reference/options.md, the JSON Schema of job files and the manual page.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "submit/options/table.h"

namespace warren::submit {

/// The text of --help, for a terminal.
std::string HelpText(const OptionTable& table);
/// The content of docs/reference/options.md.
std::string HelpMarkdown(const OptionTable& table);
/// The content of docs/reference/job.schema.json: the JSON Schema (2020-12) of job files.
std::string HelpSchema(const OptionTable& table);
/// The manual page dmlc-submit.1 for this version.
std::string HelpMan(const OptionTable& table, std::string_view version);

// --- shared by the functions above -------------------------------------------------------------------------

struct HelpParagraph {
  std::string_view title;
  std::string_view text;
};

/// Help on subjects other than options. Words in backquotes are to be typed literally.
const std::vector<HelpParagraph>& HelpParagraphs();
/// The option's names and the placeholder for its value: "--num-workers, -n N".
std::string Usage(const Option& option);
/// The option's help with its default value, without remarks that apply only to command lines.
std::string HelpWithDefault(const Option& option);
/// The option's help for command lines, with its default value.
std::string HelpOf(const Option& option);

}  // namespace warren::submit
