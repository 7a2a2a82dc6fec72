// Shared by --help, docs/reference/options.md and the manual page.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "submit/options.h"

namespace warren::submit {

struct HelpParagraph {
  std::string_view title;
  std::string_view text;
};

/// Help on subjects other than options. Words between two ` are literal.
const std::vector<HelpParagraph>& HelpParagraphs();
/// "--num-workers, -n N"
std::string Usage(const Option& option);
/// The option's help, with its default value.
std::string HelpOf(const Option& option);

}  // namespace warren::submit
