// Generates the manual page dmlc-submit.1 from the option table.
#include "submit/options/help.h"
#include "tracker/man_page.h"

namespace warren::submit {

std::string HelpMan(const OptionTable& table, std::string_view version) {
  tracker::ManPage page;
  page.program = "dmlc-submit";
  page.version = version;
  page.summary = "start a distributed job";
  page.synopsis = "[options] command [arguments...]";
  page.sections.push_back(
      {"Description",
       {"Starts N copies of the command, which find each other through a tracker, and waits for them."},
       {}});
  for (const HelpParagraph& paragraph : HelpParagraphs()) {
    page.sections.push_back({std::string(paragraph.title), {std::string(paragraph.text)}, {}});
  }
  std::string_view group;
  for (const Option& option : table.rows()) {
    if (option.group != group)
      page.sections.push_back({"Options: " + std::string(group = option.group), {}, {}});
    page.sections.back().items.push_back({Usage(option), HelpOf(option)});
  }
  page.sections.push_back({"Example",
                           {"`dmlc-submit --num-workers 3 python3 train.py max_depth=4`",
                            "`dmlc-submit --cluster ssh --host-file hosts --num-workers 8 python3 train.py`"},
                           {}});
  page.sections.push_back({"See also", {"`rabit-tracker`(1), `warren`(1)"}, {}});
  return tracker::ManText(page);
}

}  // namespace warren::submit
