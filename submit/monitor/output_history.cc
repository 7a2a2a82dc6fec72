#include "submit/monitor/output_history.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "submit/monitor/json_text.h"
#include "submit/output/line_splitter.h"

namespace warren::submit {
namespace {

/// Limit on the data that one query searches, because queries run in the thread that serves the tracker.
constexpr std::size_t kMaxSearchedBytes = std::size_t{4} << 20;

char LowerCase(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool Contains(std::string_view text, std::string_view part) {
  if (part.empty()) return true;
  return std::search(text.begin(), text.end(), part.begin(), part.end(),
                     [](char a, char b) { return LowerCase(a) == LowerCase(b); }) != text.end();
}

std::size_t CostOf(const OutputLine& line) {
  return sizeof(line) + line.text.size();
}

/// The position of a search in the lines of a process: `left` lines, the oldest ones, have not been searched
/// yet.
struct Cursor {
  std::size_t process;
  std::size_t left;
};

}  // namespace

OutputHistory::OutputHistory(std::size_t processes, std::size_t bytes_of_process, std::size_t bytes)
    : of_(processes),
      bytes_of_process_(std::min(bytes_of_process, bytes / std::max<std::size_t>(processes, 1))) {}

void OutputHistory::Add(std::size_t process, Stream stream, std::string_view line) {
  if (process >= of_.size()) return;
  Lines& lines = of_[process];
  const bool redraws = RedrawsLine(line);
  const bool goes_on = std::exchange(lines.is_drawn_over, redraws && !line.ends_with('\n')) &&
                       lines.lines.back().stream == stream;
  if (redraws) line.remove_prefix(1);
  if (!line.empty() && line.back() == '\n') line.remove_suffix(1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (goes_on && line.empty()) return;  // this ends the progress bar's line
  if (goes_on && redraws) {
    lines.bytes -= CostOf(lines.lines.back());
    lines.lines.pop_back();
  }
  lines.lines.push_back({++last_, stream, std::string(line.substr(0, kLineBytes))});
  if (line.size() > kLineBytes) lines.lines.back().text += " ...";
  lines.bytes += CostOf(lines.lines.back());
  while (lines.bytes > bytes_of_process_ && lines.lines.size() > 1) {
    lines.bytes -= CostOf(lines.lines.front());
    lines.lines.pop_front();
  }
}

std::string OutputHistory::Json(const OutputQuery& query) const {
  // The top of the queue is the process that has the latest line not searched yet.
  const auto number = [&](const Cursor& c) { return of_[c.process].lines[c.left - 1].number; };
  const auto older = [&](const Cursor& a, const Cursor& b) { return number(a) < number(b); };
  std::priority_queue<Cursor, std::vector<Cursor>, decltype(older)> next(older);
  const auto add = [&](std::size_t process) {
    const auto& lines = of_[process].lines;
    const auto end =
        std::lower_bound(lines.begin(), lines.end(), query.before,
                         [](const OutputLine& line, std::uint64_t before) { return line.number < before; });
    if (end != lines.begin()) next.push({process, static_cast<std::size_t>(end - lines.begin())});
  };
  if (!query.process) {
    for (std::size_t process = 0; process < of_.size(); ++process) add(process);
  } else if (*query.process < of_.size()) {
    add(*query.process);
  }

  const std::string_view contains = std::string_view(query.contains).substr(0, kSearchBytes);
  std::vector<Cursor> found;  // latest first
  std::size_t searched_bytes = 0;
  std::uint64_t from = 1;
  while (!next.empty()) {
    Cursor cursor = next.top();
    if (number(cursor) <= query.after) break;
    if (found.size() == query.limit || searched_bytes > kMaxSearchedBytes) {
      from = number(cursor) + 1;
      break;
    }
    next.pop();
    const OutputLine& line = of_[cursor.process].lines[cursor.left - 1];
    searched_bytes += CostOf(line);
    if (Contains(line.text, contains)) found.push_back(cursor);
    if (--cursor.left > 0) next.push(cursor);
  }

  std::string json = "{\"lines\":[";
  std::for_each(found.rbegin(), found.rend(), [&](const Cursor& cursor) {
    const OutputLine& line = of_[cursor.process].lines[cursor.left - 1];
    json += json.back() == '[' ? "[" : ",[";
    AppendJson(json, line.number);
    json += ',';
    AppendJson(json, std::uint64_t{cursor.process});
    json += line.stream == Stream::kOut ? ",\"out\"," : ",\"err\",";
    AppendJson(json, std::string_view(line.text));
    json += ']';
  });
  json += "],\"from\":";
  AppendJson(json, from);
  json += ",\"last\":";
  AppendJson(json, last_);
  return json + '}';
}

}  // namespace warren::submit
