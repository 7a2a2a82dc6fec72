// The files of the page, embedded in the program: served by it, or combined in one file.
#pragma once

#include <string>
#include <string_view>

namespace warren::submit {

/// index.html, with links to the other files.
std::string_view PageHtml();
/// page.css
std::string_view PageStyle();
/// All *.js files in this folder, in the order given in submit/CMakeLists.txt, without comment lines.
std::string PageScript();

}  // namespace warren::submit
