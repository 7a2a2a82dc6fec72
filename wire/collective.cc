#include "wire/collective.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "wire/flat_json.h"

namespace warren::wire::collective {
namespace {

/// The values of "cmd" in a command.
enum Command : std::int32_t { kStart = 1, kShutdown = 2, kFailure = 3, kPrint = 4 };

constexpr std::int32_t kMaxPort = 65535;
constexpr std::size_t kMaxAnswerBytes = 4096;

std::string Message(const nlohmann::json& object) {
  // Bytes that are not UTF-8 become U+FFFD.
  return Writer().String(object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)).Take();
}

Hello ReadHello(std::string_view text) {
  const FlatJson object("hello", text);
  Hello hello;
  hello.world_size = object.Int("world_size", -1, kMaxWorldSize);
  hello.rank = object.Int("rank", -1, kMaxWorldSize - 1);
  hello.task_id = object.Text("task_id", kMaxTaskIdBytes);
  return hello;
}

WorkerMessage ReadCommand(std::string_view text) {
  const FlatJson object("command", text);
  constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min();
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  switch (object.Int("cmd", kStart, kPrint)) {
    case kStart:
      return Start{object.Int("port", 1, kMaxPort), object.Int("error_port", 0, kMaxPort)};
    case kFailure:
      return Failure{object.Text("msg", kMaxCommandBytes), object.Int("code", kLeast, kMost)};
    case kPrint:
      return Print{object.Text("msg", kMaxCommandBytes)};
    default:
      return Shutdown{};
  }
}

}  // namespace

std::string Encode(const Hello& hello) {
  return Message({{"world_size", hello.world_size}, {"rank", hello.rank}, {"task_id", hello.task_id}});
}
std::string Encode(const Start& start) {
  return Message({{"cmd", kStart}, {"port", start.port}, {"error_port", start.error_port}});
}
std::string Encode(const Shutdown&) {
  return Message({{"cmd", kShutdown}});
}
std::string Encode(const Failure& failure) {
  return Message({{"cmd", kFailure}, {"msg", failure.text}, {"code", failure.code}});
}
std::string Encode(const Print& print) {
  return Message({{"cmd", kPrint}, {"msg", print.text}});
}

std::string Encode(const World& world) {
  return Message({{"world_size", world.size}});
}
std::string Encode(const Next& next) {
  return Message({{"rank", next.rank}, {"host", next.host}, {"port", next.port}});
}
std::string Encode(Signal signal) {
  return Writer().Int(static_cast<std::int32_t>(signal)).Take();
}

std::optional<WorkerMessage> WorkerStream::Next() {
  switch (step_) {
    case Step::kHello: {
      const auto text = reader_.String("hello", kMaxHelloBytes);
      if (!text) return std::nullopt;
      step_ = Step::kCommand;
      return ReadHello(*text);
    }
    case Step::kCommand: {
      const auto text = reader_.String("command", kMaxCommandBytes);
      if (!text) return std::nullopt;
      step_ = Step::kDone;
      return ReadCommand(*text);
    }
    case Step::kDone:
      break;
  }
  if (reader_.available() > 0)
    throw ProtocolError(fmt::format("{} bytes after the end of the exchange", reader_.available()));
  return std::nullopt;
}

std::string_view WorkerStream::Expected() const {
  switch (step_) {
    case Step::kHello:
      return "the hello";
    case Step::kCommand:
      return "the command";
    case Step::kDone:
      break;
  }
  return "nothing more";
}

std::optional<World> TrackerStream::NextWorld() {
  const auto text = reader_.String("world", kMaxAnswerBytes);
  if (!text) return std::nullopt;
  return World{FlatJson("world", *text).Int("world_size", 1, kMaxWorldSize)};
}

std::optional<Next> TrackerStream::NextPeer() {
  const auto text = reader_.String("next peer", kMaxAnswerBytes);
  if (!text) return std::nullopt;
  const FlatJson object("next peer", *text);
  return collective::Next{object.Int("rank", 0, kMaxWorldSize - 1), object.Text("host", kMaxAnswerBytes),
                          object.Int("port", 1, kMaxPort)};
}

}  // namespace warren::wire::collective
