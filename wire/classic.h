// The classic tracker dialect: the messages between a rabit worker (rabit, dmlc-core, XGBoost up to 2.0) and
// its tracker, both directions side by side. Converts between bytes and messages, without sockets or a clock.
// docs/reference/tracker-protocol.md describes the bytes.
//
//   worker                                   tracker
//   magic                              ->
//                                      <-    magic
//   Hello (rank, world, task, command) ->
//     print: text, closes              ->
//     shutdown: closes
//     start | recover:
//                                      <-    Assignment (rank, tree, ring)
//     GoodLinks                        ->
//                                      <-    LinkPlan (peers to connect to, number to accept)
//     LinkErrors (n > 0: again from GoodLinks) ->
//     ListenPort, closes               ->
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "wire/bytes.h"
#include "wire/dialect.h"

namespace warren::wire::classic {

/// Limits on the strings that a peer may announce, in bytes; usual strings are much shorter.
inline constexpr std::size_t kMaxTaskIdBytes = 1024;
inline constexpr std::size_t kMaxCommandBytes = 16;
inline constexpr std::size_t kMaxPrintBytes = std::size_t{64} << 10;
inline constexpr std::size_t kMaxHostBytes = 1024;
/// The maximum number of links in one message. Five would suffice: a worker has links only to its neighbors
/// in the tree and the ring.
inline constexpr std::int32_t kMaxGoodLinks = 64;
inline constexpr std::int32_t kMaxWorldSize = std::int32_t{1} << 17;
/// The task id of a worker that was not given one.
inline constexpr std::string_view kNoTaskId = "NULL";

enum class Command { kStart, kRecover, kPrint, kShutdown };
std::string_view CommandName(Command command);

// --- worker -> tracker -----------------------------------------------------------------------------------

struct Hello {
  std::int32_t rank = -1;        ///< -1 if not known yet
  std::int32_t world_size = -1;  ///< -1: any
  std::string task_id{kNoTaskId};
  Command command = Command::kStart;
};

struct PrintText {
  std::string text;
};

struct GoodLinks {
  std::vector<std::int32_t> ranks;  ///< peers whose link still works
};

struct LinkErrors {
  std::int32_t count = 0;  ///< number of connections of the last LinkPlan that have failed
};

struct ListenPort {
  std::int32_t port = 0;  ///< the port on which the worker now accepts its remaining links
};

/// Sent after a shutdown: the worker keeps running until all other workers have shut down, too. Only Warren's
/// workers send this message, and only Warren's tracker answers it; other trackers close the connection.
struct WaitForOthers {};
inline constexpr std::int32_t kWaitForOthers = 1;
/// The answers of Warren's tracker to ListenPort and WaitForOthers.
enum class TrackerWord : std::int32_t {
  /// Answers ListenPort: the tracker has recorded the port, also for a tracker that takes the job over. The
  /// tracker then closes the connection.
  kNoted = 4,
  /// A lost rank has returned before all had shut down: the receiver no longer counts as shut down and must
  /// recover. The tracker then closes the connection.
  kComeBack = 1,
  kHeld = 2,     ///< WaitForOthers received; another word follows
  kReleased = 3  ///< all workers have shut down; the tracker then closes the connection
};

using WorkerMessage = std::variant<Hello, PrintText, GoodLinks, LinkErrors, ListenPort, WaitForOthers>;

std::string EncodeMagic();
std::string Encode(const Hello& hello);
std::string Encode(const PrintText& print);
std::string Encode(const GoodLinks& good);
std::string Encode(const LinkErrors& errors);
std::string Encode(const ListenPort& port);
std::string Encode(const WaitForOthers& wait);
std::string Encode(TrackerWord word);

/// Decodes the messages that one worker sends to the tracker after the magic, once the dialect is known to be
/// classic. The bytes may arrive in pieces of any size.
class WorkerStream {
 public:
  void Append(std::string_view bytes) { reader_.Append(bytes); }
  /// Returns the next whole message, or `std::nullopt` until more bytes arrive. Throws ProtocolError if no
  /// worker would send these bytes; the stream is then unusable.
  std::optional<WorkerMessage> Next();
  /// The item expected next from the worker, for the log if it falls silent: "the task id", "the listening
  /// port".
  std::string_view Expected() const;
  /// True if the worker has sent everything that it must send on this connection. After a shutdown, it may
  /// still send WaitForOthers.
  bool done() const { return step_ == Step::kDone || step_ == Step::kWait; }

 private:
  enum class Step {
    kRank,
    kWorldSize,
    kTaskId,
    kCommand,
    kPrint,
    kGoodCount,
    kGoodRank,
    kErrors,
    kPort,
    kWait,
    kDone
  };

  bool Advance(std::optional<WorkerMessage>& message);
  Hello FinishHello(std::string_view command);

  Reader reader_;
  Step step_ = Step::kRank;
  Hello hello_;
  GoodLinks good_;
  std::int32_t good_count_ = 0;
};

// --- tracker -> worker -----------------------------------------------------------------------------------

struct Assignment {
  std::int32_t rank = 0;
  std::int32_t parent = -1;  ///< -1 at the root of the tree
  std::int32_t world_size = 0;
  std::vector<std::int32_t> tree_neighbors;  ///< includes the parent
  std::int32_t ring_prev = -1;               ///< -1 if the world has only one member
  std::int32_t ring_next = -1;               ///< -1 if the world has only one member
};

struct Endpoint {
  std::string host;
  std::int32_t port = 0;
  std::int32_t rank = 0;
};

struct LinkPlan {
  std::vector<Endpoint> connect;  ///< peers that are listening now
  std::int32_t num_accept = 0;    ///< peers that will connect to this worker later
};

std::string Encode(const Assignment& assignment);
std::string Encode(const LinkPlan& plan);

/// Decodes the tracker's answers to a worker, which must be requested in the order in which they arrive. Each
/// function returns `std::nullopt` until the whole answer has arrived. NextAssignment and NextLinkPlan throw
/// ProtocolError if a count, the length of a host name, the worker's rank or the world size is out of range.
class TrackerStream {
 public:
  void Append(std::string_view bytes) { reader_.Append(bytes); }
  std::optional<std::int32_t> NextMagic() { return reader_.Int(); }
  std::optional<Assignment> NextAssignment();
  std::optional<LinkPlan> NextLinkPlan();

 private:
  Reader reader_;
  std::vector<std::int32_t> ints_;
  LinkPlan plan_;
  bool plan_started_ = false;
  std::size_t plan_connects_ = 0;
};

}  // namespace warren::wire::classic
