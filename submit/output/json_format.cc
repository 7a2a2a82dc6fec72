#include "submit/output/json_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "submit/output/line_splitter.h"

namespace warren::submit {
namespace {

using Json = nlohmann::ordered_json;

std::string Line(const Json& object) {
  return object.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::string_view WithoutNewline(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

class JsonFormat : public LineFormat {
 public:
  LineFormat::Line OfProcess(Time time, Stream stream, const Speaker& speaker, std::string_view piece,
                             bool /*colored*/) const override {
    Json object = {{"time", Rfc3339(time)}, {"source", speaker.source}};
    if (speaker.source == "launcher") object["name"] = speaker.label;
    if (speaker.rank) object["rank"] = *speaker.rank;
    if (speaker.task) object["task"] = *speaker.task;
    object["stream"] = stream == Stream::kOut ? "stdout" : "stderr";
    object["text"] = WithoutNewline(piece);
    // The last piece of a process's output may also lack a newline. If it is short and redraws nothing, it
    // counts as a whole line.
    if (!piece.ends_with('\n') && (piece.size() >= kMaxLineBytes || RedrawsLine(piece)))
      object["partial"] = true;
    return {"", submit::Line(object)};
  }

  std::string Message(Time time, Severity severity, std::string_view text) const override {
    return submit::Line(
        {{"time", Rfc3339(time)}, {"source", "dmlc-submit"}, {"level", Name(severity)}, {"text", text}});
  }

  std::string TrackerPrint(Time time, std::string_view text) const override {
    std::string lines;
    while (!text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n'));
      lines += submit::Line({{"time", Rfc3339(time)}, {"source", "tracker"}, {"text", line}});
      text.remove_prefix(std::min(line.size() + 1, text.size()));
    }
    return lines;
  }

  std::string Object(Time time, std::string_view json_object_without_time) const override {
    std::string_view rest = json_object_without_time;
    if (rest.starts_with('{')) rest.remove_prefix(1);
    return fmt::format("{{\"time\":\"{}\"{}{}\n", Rfc3339(time), rest == "}" ? "" : ",", rest);
  }

  bool is_for_people() const override { return false; }
};

}  // namespace

std::unique_ptr<LineFormat> MakeJsonFormat() {
  return std::make_unique<JsonFormat>();
}

}  // namespace warren::submit
