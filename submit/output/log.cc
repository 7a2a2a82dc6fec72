#include "submit/output/log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>

#include "posix/private_file.h"

namespace warren::submit {
namespace {

Severity SeverityOf(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::critical:
    case spdlog::level::err:
      return Severity::kError;
    case spdlog::level::warn:
      return Severity::kWarning;
    case spdlog::level::info:
      return Severity::kInfo;
    default:
      return Severity::kDebug;
  }
}

std::string_view TextOf(const spdlog::details::log_msg& message) {
  return {message.payload.data(), message.payload.size()};
}

class ConsoleSink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit ConsoleSink(Console& console) : console_(console) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    console_.Message(SeverityOf(message.level), TextOf(message));
  }
  void flush_() override {}

 private:
  Console& console_;
};

constexpr char kTrackerPrints[] = "tracker prints";

bool IsTrackerPrint(const spdlog::details::log_msg& message) {
  return std::string_view(message.logger_name.data(), message.logger_name.size()) == kTrackerPrints;
}

/// Formats the lines of --log-file for people.
class TextFormatter : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& to) override {
    (IsTrackerPrint(message) ? print_ : message_).format(message, to);
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<TextFormatter>(); }

 private:
  spdlog::pattern_formatter message_{"%Y-%m-%d %H:%M:%S.%e %l: %v"};
  spdlog::pattern_formatter print_{"%Y-%m-%d %H:%M:%S.%e tracker: %v"};
};

/// Formats the lines of --log-file for programs.
class ObjectFormatter : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& to) override {
    const std::string line = IsTrackerPrint(message)
                                 ? format_->TrackerPrint(message.time, TextOf(message))
                                 : format_->Message(message.time, SeverityOf(message.level), TextOf(message));
    to.append(line.data(), line.data() + line.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<ObjectFormatter>(); }

 private:
  std::unique_ptr<LineFormat> format_ = MakeLineFormat(LogFormat::kJson);
};

}  // namespace

void StartLogging(Console& console, const LogSettings& settings) {
  auto to_console = std::make_shared<ConsoleSink>(console);
  if (settings.quiet) to_console->set_level(spdlog::level::warn);
  auto logger = std::make_shared<spdlog::logger>("dmlc-submit", std::move(to_console));
  logger->set_level(settings.debug ? spdlog::level::debug : spdlog::level::info);
  logger->flush_on(spdlog::level::debug);
  spdlog::set_default_logger(logger);
  if (settings.file.empty()) return;
  // Private, because messages contain the address of the job's page with its token.
  if (!posix::OpenPrivate(settings.file.c_str(), O_APPEND)) {
    throw std::runtime_error(
        fmt::format("--log-file: cannot write '{}': {}", settings.file, std::strerror(errno)));
  }
  const auto tell = [&console, told = std::make_shared<bool>(false)](const std::string& why) {
    if (!std::exchange(*told, true))
      console.Message(Severity::kWarning, fmt::format("--log-file: messages are missing: {}", why));
  };
  logger->set_error_handler(tell);
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_st>(settings.file);
    if (settings.format == LogFormat::kJson) {
      sink->set_formatter(std::make_unique<ObjectFormatter>());
    } else {
      sink->set_formatter(std::make_unique<TextFormatter>());
    }
    logger->sinks().push_back(sink);
    auto prints = std::make_shared<spdlog::logger>(kTrackerPrints, std::move(sink));
    prints->flush_on(spdlog::level::info);
    prints->set_error_handler(tell);
    spdlog::register_logger(std::move(prints));
  } catch (const spdlog::spdlog_ex& error) {
    throw std::runtime_error(fmt::format("--log-file: {}", error.what()));
  }
}

void LogTrackerPrint(std::string_view text) {
  const auto prints = spdlog::get(kTrackerPrints);
  if (!prints) return;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    prints->info("{}", line);
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
}

void StopLogging() {
  spdlog::drop_all();
}

}  // namespace warren::submit
