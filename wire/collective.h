// The collective tracker dialect: the conversation between a worker of XGBoost 2.1 or later and its tracker,
// both directions side by side. Bytes in, messages out: no sockets, no clock.
// docs/reference/tracker-protocol.md shows the same in bytes. Behind the magic every message is a string that
// holds one JSON object.
//
//   worker                                        tracker
//   magic                                   ->
//                                           <-    magic
//   Hello (world size, rank, task)          ->
//     Start (port, error port)              ->
//                                           <-    World (its size), at once
//                                           <-    Next (the peer to connect to), when all have come
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

/// Limits on what a peer may announce.
inline constexpr std::size_t kMaxTaskIdBytes = 1024;
inline constexpr std::size_t kMaxHelloBytes = 8 * 1024;
/// A failure comes with a stack trace, and escapes make text up to six times as long.
inline constexpr std::size_t kMaxCommandBytes = std::size_t{512} << 10;
inline constexpr std::int32_t kMaxWorldSize = std::int32_t{1} << 17;

// --- worker -> tracker -----------------------------------------------------------------------------------

struct Hello {
  std::int32_t world_size = -1;  ///< -1: not known yet
  std::int32_t rank = -1;        ///< -1: not known yet
  std::string task_id;           ///< empty: it has none
};

struct Start {
  std::int32_t port = 0;        ///< where it accepts links of other workers
  std::int32_t error_port = 0;  ///< where it can be told to stop; 0: nowhere
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

/// Decodes what one worker sends to the tracker, however it is cut into pieces. Whoever makes it has read the
/// magic and found the collective dialect.
class WorkerStream {
 public:
  void Append(std::string_view bytes) { reader_.Append(bytes); }
  /// The next whole message, or `std::nullopt` until more bytes arrive. Throws ProtocolError when the bytes
  /// cannot be a worker's; the stream is then of no further use.
  std::optional<WorkerMessage> Next();
  /// What a worker that falls silent now still owes, for the log.
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

/// The next worker in the ring. A worker learns its own rank from it: the one before.
struct Next {
  std::int32_t rank = 0;
  std::string host;
  std::int32_t port = 0;
};

/// What a worker's error port understands. XGBoost up to 3.4 takes 1 for an error, and nothing else; the -1
/// that its own tracker sends does nothing.
enum class Signal : std::int32_t { kEnd = 0, kError = 1 };

std::string Encode(const World& world);
std::string Encode(const Next& next);
std::string Encode(Signal signal);

/// Decodes what the tracker sends to a worker: answers in the order they come. Each call returns
/// `std::nullopt` until the whole message has arrived, and throws ProtocolError on impossible values.
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
