#include "submit/options/help.h"

#include <fmt/format.h>

#include <algorithm>

namespace warren::submit {
namespace {

std::string ClustersThatHeed(const OptionTable& table, const Option& option) {
  if (option.for_every_cluster) return "all";
  std::string names;
  for (const ClusterFacts& cluster : table.clusters()) {
    if (Heeds(cluster, option)) names += fmt::format("{}{}", names.empty() ? "" : ", ", cluster.name);
  }
  return names.empty() ? "none" : names;
}

/// Wraps `text` into lines of at most `width` characters; all but the first are indented.
std::string Wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  std::string out;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    if (column > 0 && column + 1 + word.size() > width) {
      out += fmt::format("\n{:{}}", "", indent);
      column = 0;
    } else if (column > 0) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    text.remove_prefix(std::min(word.size() + 1, text.size()));
  }
  return out;
}

/// Calls `heading` for each new group and `row` for each option, in table order.
template <typename Heading, typename Row>
void ForEachRow(const OptionTable& table, const Heading& heading, const Row& row) {
  std::string_view group;
  for (const Option& option : table.rows()) {
    if (option.group != group) heading(group = option.group);
    row(option);
  }
}

std::string EscapedForMarkdown(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

const std::vector<HelpParagraph>& HelpParagraphs() {
  static const std::vector<HelpParagraph> paragraphs = {
      {"The command",
       "The options end at the first word that is not an option, or after `--`. From there on every word goes to the command byte for byte; no shell reads it. "
       "A command without a `/` is looked up on `PATH`, as a shell does; "
       "if it is not there and the current directory contains an executable file of that name, that file is run as `./name`."},
      {"The environment",
       "Processes on dmlc-submit's machine get its environment, and processes elsewhere what the cluster gives them; "
       "then come `--env` and the `DMLC_` variables of the job. Their standard input is empty. Workers also get the variables that torchrun sets: "
       "`RANK`, `WORLD_SIZE`, `LOCAL_RANK`, `LOCAL_WORLD_SIZE` (with sge, yarn and kubernetes each worker counts as a host of its own), "
       "`MASTER_ADDR` and `MASTER_PORT`: worker 0's host, and a port from 20000 to 31999 that is chosen for the job, unless `--env` sets them. "
       "The names of horovodrun are set, too: `HOROVOD_RANK`, `HOROVOD_SIZE`, `HOROVOD_LOCAL_RANK`, `HOROVOD_LOCAL_SIZE`, "
       "and with local and ssh `HOROVOD_CROSS_RANK` and `HOROVOD_CROSS_SIZE` (with the others `hvd.init()` sets these two)."},
      {"Parameter servers",
       "With `--num-servers` the scheduler, the servers and the workers find each other through `DMLC_PS_ROOT_URI` and `DMLC_PS_ROOT_PORT`. "
       "No rabit tracker runs, because such programs never connect to one."},
      {"Job files",
       "`--job job.yaml` reads the options by their long names without the dashes (`num-workers: 4`; `num_workers` is the same), and the command from `command`: "
       "a list of words, or one text that is split into words as a shell does, with quotes and `\\` but without expansions. "
       "Flags are `true` or `false`; options that may be given several times take a list, and `env` also a map. "
       "Nothing else in the file is interpreted. Relative paths start from the current directory, as on the command line. "
       "`--save job.yaml` writes such a file, and `--help-schema` prints its JSON Schema."},
      {"Exit code",
       "0 when every process exits with 0; otherwise that of the first process that failed for good (128 + the number of the signal that killed it); "
       "127 or 126 when the command cannot be found or run; 2 for an error in the options; 1 for an error of dmlc-submit or the tracker; "
       "130, 143 or 129 after SIGINT, SIGTERM or SIGHUP; 141 when the reader of the output has closed it."},
  };
  return paragraphs;
}

std::string Usage(const Option& option) {
  std::string names(option.name);
  for (const std::string_view name : option.other_names) names += fmt::format(", {}", name);
  if (option.value_is_optional) return fmt::format("{}{}", names, option.value);
  return option.value.empty() ? names : fmt::format("{} {}", names, option.value);
}

std::string HelpWithDefault(const Option& option) {
  return option.default_value.empty() ? option.help
                                      : fmt::format("{} Default: {}.", option.help, option.default_value);
}

std::string HelpOf(const Option& option) {
  return HelpWithDefault(option) + (option.repeatable ? " May be given several times." : "");
}

std::string HelpText(const OptionTable& table) {
  constexpr std::size_t kColumn = 30;
  constexpr std::size_t kWidth = 100 - kColumn;
  std::string text =
      "Usage: dmlc-submit [options] command [arguments...]\n\n"
      "Starts a distributed job: N copies of the command that find each other through a tracker.\n"
      "The options end at the first word that is not an option.\n"
      "The command gets its arguments exactly as written.\n"
      "Example: dmlc-submit --num-workers 3 ./xgb-train train.conf max_depth=4\n";
  ForEachRow(
      table, [&](std::string_view group) { text += fmt::format("\n{}:\n", group); },
      [&](const Option& option) {
        const std::string usage = Usage(option);
        text += fmt::format("  {:<{}}", usage, kColumn - 2);
        if (usage.size() + 3 > kColumn) text += fmt::format("\n{:{}}", "", kColumn);
        text += Wrapped(HelpOf(option), kWidth, kColumn) + '\n';
      });
  return text;
}

std::string HelpMarkdown(const OptionTable& table) {
  std::string text =
      "# Options of dmlc-submit\n\n"
      "`dmlc-submit [options] command [arguments...]` starts a distributed job: copies of one command that find each other through a tracker. "
      "This page is written by `dmlc-submit --help-markdown`.\n";
  for (const HelpParagraph& paragraph : HelpParagraphs()) {
    text += fmt::format("\n**{}.** {}\n", paragraph.title, paragraph.text);
  }
  ForEachRow(
      table,
      [&](std::string_view group) {
        text += fmt::format("\n## {}\n\n| Option | What it does | Clusters |\n|---|---|---|\n", group);
      },
      [&](const Option& option) {
        text += fmt::format("| `{}` | {} | {} |\n", EscapedForMarkdown(Usage(option), "|"),
                            EscapedForMarkdown(HelpOf(option), "|<>"), ClustersThatHeed(table, option));
      });
  return text;
}

}  // namespace warren::submit
