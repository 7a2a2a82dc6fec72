// A whole tracker job driven by the input, which determines when connections open, close and receive bytes,
// which tasks fail, and how time passes. The state machine must never crash or finish twice, and once past
// deadlines have been handled, the next one must lie in the future.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tracker/job.h"
#include "wire/membership.h"
#include "wire/report.h"

namespace {

using namespace warren::tracker;
namespace classic = warren::wire::classic;
namespace collective = warren::wire::collective;

/// From this value on, a choice means a message of the collective protocol, or in the fuzzer's loop an
/// outgoing connection or a failed task.
constexpr unsigned kOther = 0xC0;
constexpr unsigned kReport = 0xFF;
constexpr unsigned kMember = 0xFE;

/// Reads the input from front to back. At its end, Byte returns 0 and Bytes an empty view.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : bytes_(reinterpret_cast<const char*>(data), size) {}
  bool empty() const { return bytes_.empty(); }
  unsigned Byte() {
    if (bytes_.empty()) return 0;
    const auto value = static_cast<unsigned char>(bytes_.front());
    bytes_.remove_prefix(1);
    return value;
  }
  std::string_view Bytes(std::size_t count) {
    const std::string_view piece = bytes_.substr(0, count);
    bytes_.remove_prefix(piece.size());
    return piece;
  }

 private:
  std::string_view bytes_;
};

std::string CollectiveMessage(Input& input) {
  const auto small = [&] { return static_cast<std::int32_t>(input.Byte() % 8) - 1; };
  collective::Hello hello;
  hello.world_size = input.Byte() % 4 == 0 ? small() : -1;
  hello.rank = small();
  const unsigned named = input.Byte();
  hello.task_id = named % 4 == 0 ? "" : std::to_string(input.Byte() % 8);
  if (named >= kOther)
    hello.task_id = warren::wire::TaskInGeneration(hello.task_id, static_cast<int>(named % 5));
  const std::string head = classic::EncodeMagic() + collective::Encode(hello);
  switch (input.Byte() % 4) {
    case 0:
      return head + collective::Encode(collective::Shutdown{});
    case 1:
      return head + collective::Encode(collective::Failure{"bad", 1});
    case 2:
      return head + collective::Encode(collective::Print{"text"});
    default:
      return head + collective::Encode(collective::Start{9000, static_cast<std::int32_t>(input.Byte() % 3)});
  }
}

/// A message of a membership, with or without its magic number.
std::string MemberMessage(Input& input) {
  warren::wire::MemberMessage message;
  const unsigned choice = input.Byte();
  message.word = static_cast<warren::wire::MemberWord>(choice % 5);
  if (choice % 2 == 0) message.task_id = std::to_string(input.Byte() % 8);
  const std::string magic = warren::wire::Writer().Int(warren::wire::kMembershipMagic).Take();
  return (choice < kOther ? magic : "") + warren::wire::Encode(message);
}

/// A well-formed message, so that the fuzzer gets past the hello without guessing lengths.
std::string Message(Input& input) {
  const auto small = [&] { return static_cast<std::int32_t>(input.Byte() % 8) - 1; };
  const unsigned choice = input.Byte();
  if (choice == kReport)
    return warren::wire::Writer().Int(warren::wire::kReportMagic).Take() +
           warren::wire::Encode(warren::wire::WorkerReport{});
  if (choice == kMember) return MemberMessage(input);
  if (choice >= kOther) return CollectiveMessage(input);
  switch (choice % 6) {
    case 0: {
      constexpr classic::Command kCommands[] = {classic::Command::kStart, classic::Command::kRecover,
                                                classic::Command::kPrint, classic::Command::kShutdown};
      classic::Hello hello;
      hello.rank = small();
      hello.world_size = input.Byte() % 4 == 0 ? small() : -1;
      hello.task_id = input.Byte() % 4 == 0 ? "NULL" : std::to_string(input.Byte() % 8);
      hello.command = kCommands[input.Byte() % 4];
      return classic::EncodeMagic() + classic::Encode(hello);
    }
    case 1:
      return classic::Encode(classic::GoodLinks{});
    case 2:
      return classic::Encode(classic::GoodLinks{{small(), small()}});
    case 3:
      return classic::Encode(classic::LinkErrors{0});
    case 4:
      return classic::Encode(classic::LinkErrors{1});
    default:
      return classic::Encode(classic::ListenPort{9010 + small()});
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  TimePoint now{};
  JobOptions options{1 + static_cast<int>(input.Byte() % 5)};
  const unsigned kind = input.Byte();
  options.sort_by = kind % 2 == 0 ? SortBy::kHost : SortBy::kTask;
  options.timeout = std::chrono::seconds(input.Byte());
  if (kind % 4 == 3) {
    options.elastic = {1 + static_cast<int>(kind / 4) % options.num_workers, options.num_workers,
                       std::chrono::seconds(kind / 32), options.timeout};
  }
  Job job(options, now);
  ConnectionId next = 1;
  std::vector<ConnectionId> calls;
  int finishes = 0;
  while (!input.empty()) {
    const unsigned choice = input.Byte();
    const unsigned what = choice >= kOther ? 8 + choice % 2 : choice % 8;
    const ConnectionId connection = next == 1 ? 1 : 1 + input.Byte() % (next - 1);
    if (what <= 1) {
      job.Opened(next++, input.Byte() % 2 == 0 ? "10.0.0.1" : "10.0.0.2", 1, now);
    } else if (what == 2) {
      job.Closed(connection, "it closed the connection", now);
    } else if (what == 3) {
      now += std::chrono::milliseconds(1 << input.Byte() % 16);
      job.Tick(now);
      const auto deadline = job.NextDeadline();
      if (deadline && *deadline <= now) std::abort();
    } else if (what == 8) {
      const ConnectionId called = calls.empty() ? 0 : calls[input.Byte() % calls.size()];
      job.Connected(called);
      if (input.Byte() % 2 == 0) job.Closed(called, "it closed the connection", now);
    } else if (what == 9) {
      job.TaskFailed(std::to_string(input.Byte() % 8), "was killed", now);
    } else if (what == 4) {
      job.Received(connection, input.Bytes(input.Byte()), now);
    } else {
      job.Received(connection, Message(input), now);
    }
    for (const Action& action : job.TakeActions()) {
      if (std::get_if<Finished>(&action) != nullptr && ++finishes > 1) std::abort();
      if (const auto* call = std::get_if<Connect>(&action)) calls.push_back(call->connection);
    }
    job.DescribeMissing();
  }
  return 0;
}
