#include "submit/output/log.h"

#include <fmt/format.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <stdexcept>
#include <utility>

namespace warren::submit {
namespace {

std::string_view LevelPrefix(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::critical:
    case spdlog::level::err:
      return "error: ";
    case spdlog::level::warn:
      return "warning: ";
    default:
      return "";
  }
}

class ConsoleSink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit ConsoleSink(Console& console) : console_(console) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    console_.Message(fmt::format("dmlc-submit: {}{}\n", LevelPrefix(message.level),
                                 std::string_view(message.payload.data(), message.payload.size())));
  }
  void flush_() override {}

 private:
  Console& console_;
};

}  // namespace

void StartLogging(Console& console, bool debug, const std::string& file) {
  auto logger = std::make_shared<spdlog::logger>("dmlc-submit", std::make_shared<ConsoleSink>(console));
  logger->set_level(debug ? spdlog::level::debug : spdlog::level::info);
  logger->flush_on(spdlog::level::debug);
  spdlog::set_default_logger(logger);
  if (file.empty()) return;
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_st>(file);
    sink->set_pattern("%Y-%m-%d %H:%M:%S.%e %l: %v");
    logger->sinks().push_back(std::move(sink));
  } catch (const spdlog::spdlog_ex& error) {
    throw std::runtime_error(fmt::format("--log-file: {}", error.what()));
  }
}

void StopLogging() {
  spdlog::drop_all();
}

}  // namespace warren::submit
