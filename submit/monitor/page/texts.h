// The files of the page, as part of the program: they are served, or put into one file.
#pragma once

#include <string>
#include <string_view>

namespace warren::submit {

/// index.html, with links to the other two.
std::string_view PageHtml();
/// page.css
std::string_view PageStyle();
/// All *.js of this folder, in the order in which CMakeLists.txt names them.
std::string PageScript();

}  // namespace warren::submit
