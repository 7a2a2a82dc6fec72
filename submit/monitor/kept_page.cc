#include "submit/monitor/kept_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "submit/monitor/page/texts.h"
#include "submit/monitor/page_state.h"

namespace warren::submit {
namespace {

void Replace(std::string& text, std::string_view what, std::string_view with) {
  const std::size_t at = text.find(what);
  if (at == std::string::npos) throw std::logic_error(fmt::format("no '{}' in index.html", what));
  text.replace(at, what.size(), with);
}

}  // namespace

std::string KeptPage(const JobSnapshot& job, const OutputHistory& output, const UsageHistory& usage) {
  std::string page(PageHtml());
  // Every "<" in the JSON is escaped (json_text.h), so the JSON cannot end the script element.
  std::string data = R"(<script id="kept" type="application/json">{"state":)";
  data += PageState(job);
  data += ",\"usage\":";
  data += usage.Json();
  data += ",\"logs\":[";
  OutputQuery query;
  query.limit = kMaxKeptLines / std::max<std::size_t>(output.processes(), 1);
  for (std::size_t i = 0; i < output.processes(); ++i) {
    query.process = i;
    if (i > 0) data += ',';
    data += output.Json(query);
  }
  data += "]}</script>\n";
  Replace(
      page, "<link rel=\"stylesheet\" href=\"page.css\">",
      fmt::format(
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
          "img-src data:\">\n<style>\n{}</style>",
          PageStyle()));
  Replace(page, "<script src=\"page.js\" defer></script>", "");
  Replace(page, "</body>", fmt::format("{}<script>\n{}</script>\n</body>", data, PageScript()));
  return page;
}

}  // namespace warren::submit
