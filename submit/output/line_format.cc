#include "submit/output/line_format.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>

#include "submit/output/json_format.h"
#include "submit/output/line_splitter.h"

namespace warren::submit {
namespace {

constexpr std::string_view kResetColor = "\x1b[0m";
/// Foreground colors that are readable on dark and light backgrounds; red is reserved for errors.
constexpr std::array<int, 9> kColors = {36, 33, 32, 35, 34, 96, 92, 95, 94};

/// The format of --log-format text.
class TextFormat : public LineFormat {
 public:
  Line OfProcess(Time, Stream, const Speaker& speaker, std::string_view piece, bool colored) const override {
    const std::string prefix = Prefix(speaker, colored);
    if (!RedrawsLine(piece)) return {prefix, std::string(piece)};
    return {'\r' + prefix, std::string(piece.substr(1)), true};
  }
  std::string Message(Time, Severity severity, std::string_view text) const override {
    return fmt::format("dmlc-submit: {}{}\n", SeverityPrefix(severity), text);
  }
  std::string TrackerPrint(Time, std::string_view text) const override {
    std::string lines(text);
    if (!lines.empty() && lines.back() != '\n') lines += '\n';
    return lines;
  }
  std::string Object(Time, std::string_view) const override { return {}; }
  bool is_for_people() const override { return true; }
};

}  // namespace

std::string Prefix(const Speaker& speaker, bool colored) {
  if (!colored) return fmt::format("[{}] ", speaker.label);
  const auto color = static_cast<std::size_t>(speaker.color) % kColors.size();
  return fmt::format("\x1b[{}m[{}]{} ", kColors[color], speaker.label, kResetColor);
}

std::string_view SeverityPrefix(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "error: ";
    case Severity::kWarning:
      return "warning: ";
    case Severity::kInfo:
    case Severity::kDebug:
      break;
  }
  return "";
}

std::string Rfc3339(LineFormat::Time time) {
  const auto ms = std::chrono::floor<std::chrono::milliseconds>(time);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(ms);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)), (ms - seconds).count());
}

std::unique_ptr<LineFormat> MakeLineFormat(LogFormat format) {
  return format == LogFormat::kJson ? MakeJsonFormat() : std::make_unique<TextFormat>();
}

}  // namespace warren::submit
