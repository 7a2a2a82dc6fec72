// What --help, docs/reference/options.md and the manual page share.
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

/// What is to know besides the options. Words between two ` are typed so.
const std::vector<HelpParagraph>& HelpParagraphs();
/// "--num-workers, -n N"
std::string Usage(const Option& option);
/// With its default value.
std::string HelpOf(const Option& option);

}  // namespace warren::submit
