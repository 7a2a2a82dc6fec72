#include "wire/classic.h"

#include <fmt/format.h>

#include <utility>

#include "wire/printable.h"

namespace warren::wire::classic {
namespace {

struct CommandWord {
  Command command;
  std::string_view word;
};
constexpr CommandWord kCommands[] = {
    {Command::kStart, "start"},
    {Command::kRecover, "recover"},
    {Command::kPrint, "print"},
    {Command::kShutdown, "shutdown"},
};

constexpr std::int32_t kMaxTreeNeighbors = 64;
constexpr std::int32_t kMaxPort = 65535;

void RequireRange(std::string_view what, std::int32_t value, std::int32_t low, std::int32_t high) {
  if (value < low || value > high) {
    throw ProtocolError(fmt::format("the {} is {}, expected {} to {}", what, value, low, high));
  }
}

}  // namespace

std::string_view CommandName(Command command) {
  for (const CommandWord& entry : kCommands) {
    if (entry.command == command) return entry.word;
  }
  return "unknown";
}

std::string EncodeMagic() {
  return Writer().Int(kMagic).Take();
}

std::string Encode(const Hello& hello) {
  return Writer()
      .Int(hello.rank)
      .Int(hello.world_size)
      .String(hello.task_id)
      .String(CommandName(hello.command))
      .Take();
}

std::string Encode(const PrintText& print) {
  return Writer().String(print.text).Take();
}

std::string Encode(const GoodLinks& good) {
  Writer writer;
  writer.Int(static_cast<std::int32_t>(good.ranks.size()));
  for (const std::int32_t rank : good.ranks) writer.Int(rank);
  return writer.Take();
}

std::string Encode(const LinkErrors& errors) {
  return Writer().Int(errors.count).Take();
}

std::string Encode(const ListenPort& port) {
  return Writer().Int(port.port).Take();
}

std::string Encode(const WaitForOthers&) {
  return Writer().Int(kWaitForOthers).Take();
}

std::string Encode(TrackerWord word) {
  return Writer().Int(static_cast<std::int32_t>(word)).Take();
}

std::optional<WorkerMessage> WorkerStream::Next() {
  std::optional<WorkerMessage> message;
  while (!message && Advance(message)) {
  }
  return message;
}

// Reads the next field. Returns false if it has not fully arrived or nothing more is expected; sets `message`
// if the field completes a message. Throws ProtocolError if the field is invalid.
bool WorkerStream::Advance(std::optional<WorkerMessage>& message) {
  switch (step_) {
    case Step::kRank: {
      const auto rank = reader_.Int();
      if (!rank) return false;
      RequireRange("rank", *rank, -1, kMaxWorldSize - 1);
      hello_.rank = *rank;
      step_ = Step::kWorldSize;
      return true;
    }
    case Step::kWorldSize: {
      const auto world_size = reader_.Int();
      if (!world_size) return false;
      RequireRange("world size", *world_size, -1, kMaxWorldSize);
      hello_.world_size = *world_size;
      step_ = Step::kTaskId;
      return true;
    }
    case Step::kTaskId: {
      auto task_id = reader_.String("task id", kMaxTaskIdBytes);
      if (!task_id) return false;
      hello_.task_id = std::move(*task_id);
      step_ = Step::kCommand;
      return true;
    }
    case Step::kCommand: {
      const auto word = reader_.String("command", kMaxCommandBytes);
      if (!word) return false;
      message = FinishHello(*word);
      return true;
    }
    case Step::kPrint: {
      auto text = reader_.String("text to print", kMaxPrintBytes);
      if (!text) return false;
      message = PrintText{std::move(*text)};
      step_ = Step::kDone;
      return true;
    }
    case Step::kGoodCount: {
      const auto count = reader_.Int();
      if (!count) return false;
      RequireRange("number of good links", *count, 0, kMaxGoodLinks);
      good_count_ = *count;
      good_.ranks.clear();
      step_ = Step::kGoodRank;
      return true;
    }
    case Step::kGoodRank: {
      if (static_cast<std::int32_t>(good_.ranks.size()) == good_count_) {
        message = std::move(good_);
        good_ = {};
        step_ = Step::kErrors;
        return true;
      }
      const auto rank = reader_.Int();
      if (!rank) return false;
      RequireRange("rank of a good link", *rank, 0, kMaxWorldSize - 1);
      good_.ranks.push_back(*rank);
      return true;
    }
    case Step::kErrors: {
      const auto count = reader_.Int();
      if (!count) return false;
      RequireRange("number of failed links", *count, 0, kMaxGoodLinks);
      message = LinkErrors{*count};
      step_ = *count == 0 ? Step::kPort : Step::kGoodCount;
      return true;
    }
    case Step::kPort: {
      const auto port = reader_.Int();
      if (!port) return false;
      RequireRange("listening port", *port, 1, kMaxPort);
      message = ListenPort{*port};
      step_ = Step::kDone;
      return true;
    }
    case Step::kWait: {
      const auto word = reader_.Int();
      if (!word) return false;
      RequireRange("word after shutdown", *word, kWaitForOthers, kWaitForOthers);
      message = WaitForOthers{};
      step_ = Step::kDone;
      return true;
    }
    case Step::kDone:
      if (reader_.available() > 0) {
        throw ProtocolError(fmt::format("{} bytes after the end of the exchange", reader_.available()));
      }
      return false;
  }
  return false;
}

Hello WorkerStream::FinishHello(std::string_view word) {
  for (const CommandWord& entry : kCommands) {
    if (entry.word != word) continue;
    hello_.command = entry.command;
    step_ = entry.command == Command::kPrint      ? Step::kPrint
            : entry.command == Command::kShutdown ? Step::kWait
                                                  : Step::kGoodCount;
    return hello_;
  }
  throw ProtocolError(
      fmt::format("the command is \"{}\", expected start, recover, print or shutdown", Printable(word)));
}

std::string_view WorkerStream::Expected() const {
  switch (step_) {
    case Step::kRank:
      return "the rank";
    case Step::kWorldSize:
      return "the world size";
    case Step::kTaskId:
      return "the task id";
    case Step::kCommand:
      return "the command";
    case Step::kPrint:
      return "the text to print";
    case Step::kGoodCount:
    case Step::kGoodRank:
      return "the list of good links";
    case Step::kErrors:
      return "the number of failed links";
    case Step::kPort:
      return "the listening port";
    case Step::kWait:
    case Step::kDone:
      return "nothing more";
  }
  return "nothing more";
}

std::string Encode(const Assignment& assignment) {
  Writer writer;
  writer.Int(assignment.rank).Int(assignment.parent).Int(assignment.world_size);
  writer.Int(static_cast<std::int32_t>(assignment.tree_neighbors.size()));
  for (const std::int32_t rank : assignment.tree_neighbors) writer.Int(rank);
  return writer.Int(assignment.ring_prev).Int(assignment.ring_next).Take();
}

std::string Encode(const LinkPlan& plan) {
  Writer writer;
  writer.Int(static_cast<std::int32_t>(plan.connect.size())).Int(plan.num_accept);
  for (const Endpoint& peer : plan.connect) writer.String(peer.host).Int(peer.port).Int(peer.rank);
  return writer.Take();
}

std::optional<Assignment> TrackerStream::NextAssignment() {
  // The integers are: rank, parent, world size, number of tree neighbors, the tree neighbors, and the
  // previous and the next rank in the ring.
  constexpr std::size_t kHead = 4;
  constexpr std::size_t kTail = 2;
  for (;;) {
    if (ints_.size() == kHead) RequireRange("number of tree neighbours", ints_[3], 0, kMaxTreeNeighbors);
    if (ints_.size() >= kHead && ints_.size() == kHead + static_cast<std::size_t>(ints_[3]) + kTail) break;
    const auto value = reader_.Int();
    if (!value) return std::nullopt;
    ints_.push_back(*value);
  }
  Assignment assignment;
  assignment.rank = ints_[0];
  assignment.parent = ints_[1];
  assignment.world_size = ints_[2];
  RequireRange("world size", assignment.world_size, 1, kMaxWorldSize);
  RequireRange("rank", assignment.rank, 0, assignment.world_size - 1);
  assignment.tree_neighbors.assign(ints_.begin() + kHead, ints_.end() - kTail);
  assignment.ring_prev = ints_[ints_.size() - 2];
  assignment.ring_next = ints_[ints_.size() - 1];
  ints_.clear();
  return assignment;
}

std::optional<LinkPlan> TrackerStream::NextLinkPlan() {
  if (!plan_started_) {
    if (reader_.available() < 2 * sizeof(std::int32_t)) return std::nullopt;
    const std::int32_t connects = *reader_.Int();
    RequireRange("number of links to connect", connects, 0, kMaxGoodLinks);
    plan_ = {};
    plan_connects_ = static_cast<std::size_t>(connects);
    plan_.num_accept = *reader_.Int();
    RequireRange("number of links to accept", plan_.num_accept, 0, kMaxGoodLinks);
    plan_started_ = true;
  }
  while (plan_.connect.size() < plan_connects_) {
    // An endpoint is read only once it has arrived completely, since a part of it cannot be put back.
    const auto host_bytes = reader_.PeekInt();
    if (!host_bytes) return std::nullopt;
    RequireRange("length of a host name", *host_bytes, 0, kMaxHostBytes);
    if (reader_.available() < static_cast<std::size_t>(*host_bytes) + 3 * sizeof(std::int32_t)) {
      return std::nullopt;
    }
    Endpoint peer;
    peer.host = *reader_.String("host name", kMaxHostBytes);
    peer.port = *reader_.Int();
    peer.rank = *reader_.Int();
    plan_.connect.push_back(std::move(peer));
  }
  plan_started_ = false;
  return std::move(plan_);
}

}  // namespace warren::wire::classic
