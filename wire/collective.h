// The collective tracker dialect: the messages between a worker of XGBoost 2.1 or later and its tracker, both
// directions side by side. Converts between bytes and messages, without sockets or a clock.
// docs/reference/tracker-protocol.md describes the bytes. After the magic, every message except Signal is a
// string that holds one JSON object.
//
//   worker                                        tracker
//   magic                                   ->
//                                           <-    magic
//   Hello (world size, rank, task)          ->
//     Start (port, error port)              ->
//                                           <-    World (its size), immediately
//                                           <-    Next (the peer to connect to), when all have arrived
//     Shutdown | Failure | Print, closes    ->
//
//   the error port of a worker              tracker
//                                           <-    Signal, one int
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "wire/bytes.h"
#include "wire/dialect.h"

namespace warren::wire::collective {

/// The maximum lengths in bytes of a task id and of a hello.
inline constexpr std::size_t kMaxTaskIdBytes = 1024;
inline constexpr std::size_t kMaxHelloBytes = 8 * 1024;
/// The maximum length of a command in bytes: a failure message may include a stack trace, and JSON's escapes
/// can make text six times as long.
inline constexpr std::size_t kMaxCommandBytes = std::size_t{512} << 10;
inline constexpr std::int32_t kMaxWorldSize = std::int32_t{1} << 17;

// --- worker -> tracker -----------------------------------------------------------------------------------

struct Hello {
  std::int32_t world_size = -1;  ///< -1 if not known yet
  std::int32_t rank = -1;        ///< -1 if not known yet
  std::string task_id;           ///< empty if the worker has none
};

struct Start {
  std::int32_t port = 0;        ///< the port on which the worker accepts links from other workers
  std::int32_t error_port = 0;  ///< the port on which the worker accepts a Signal; 0 if it has none
};

struct Shutdown {};

struct Failure {
  std::string text;
  std::int32_t code = 0;
};

struct Print {
  std::string text;
};

using WorkerMessage = std::variant<Hello, Start, Shutdown, Failure, Print>;

std::string Encode(const Hello& hello);
std::string Encode(const Start& start);
std::string Encode(const Shutdown& shutdown);
std::string Encode(const Failure& failure);
std::string Encode(const Print& print);

/// Decodes the messages that one worker sends to the tracker after the magic, once the dialect is known to be
/// collective. The bytes may arrive in pieces of any size.
class WorkerStream {
 public:
  void Append(std::string_view bytes) { reader_.Append(bytes); }
  /// Returns the next whole message, or `std::nullopt` until more bytes arrive. Throws ProtocolError if no
  /// worker would send these bytes; the stream is then unusable.
  std::optional<WorkerMessage> Next();
  /// The item expected next from the worker, for the log if it falls silent.
  std::string_view Expected() const;

 private:
  enum class Step { kHello, kCommand, kDone };

  Reader reader_;
  Step step_ = Step::kHello;
};

// --- tracker -> worker -----------------------------------------------------------------------------------

struct World {
  std::int32_t size = 0;
};

/// The next worker in the ring. The receiver's own rank is the one before `rank`, or the last rank if `rank`
/// is 0.
struct Next {
  std::int32_t rank = 0;
  std::string host;
  std::int32_t port = 0;
};

/// The signals that a worker's error port accepts. XGBoost (up to 3.4) treats only 1 as an error: the -1 that
/// its own tracker sends has no effect.
enum class Signal : std::int32_t { kEnd = 0, kError = 1 };

std::string Encode(const World& world);
std::string Encode(const Next& next);
std::string Encode(Signal signal);

/// Decodes the tracker's answers to a worker, which must be requested in the order in which they arrive. Each
/// function returns `std::nullopt` until the whole answer has arrived. NextWorld and NextPeer throw
/// ProtocolError if it is invalid.
class TrackerStream {
 public:
  void Append(std::string_view bytes) { reader_.Append(bytes); }
  std::optional<std::int32_t> NextMagic() { return reader_.Int(); }
  std::optional<World> NextWorld();
  std::optional<Next> NextPeer();

 private:
  Reader reader_;
};

}  // namespace warren::wire::collective
