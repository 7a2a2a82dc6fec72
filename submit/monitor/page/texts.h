// The files of the page, embedded in the program. The server sends them separately; kept_page.h combines them
// in one file.
#pragma once

#include <string>
#include <string_view>

namespace warren::submit {

/// The text of index.html, which refers to page.css and page.js.
std::string_view PageHtml();
/// The text of page.css.
std::string_view PageStyle();
/// The text of page.js: all *.js files in this folder, in the order given in submit/CMakeLists.txt, without
/// comment lines.
std::string PageScript();

}  // namespace warren::submit
