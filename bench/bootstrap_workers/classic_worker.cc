#include "bench/bootstrap_workers/classic_worker.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <system_error>

namespace warren::bench {
namespace {

namespace classic = wire::classic;

}  // namespace

void ClassicWorker::Say(const Descriptor& tracker, std::string_view message) {
  const std::size_t piece = options_->whole_messages ? message.size() : kIntBytes;
  for (std::size_t at = 0; at < message.size(); at += piece) fiber_.Send(tracker, message.substr(at, piece));
}

void ClassicWorker::SayHello(const Descriptor& tracker, const classic::Hello& hello) {
  const std::string message = Encode(hello);
  if (options_->whole_messages) return fiber_.Send(tracker, message);
  std::string_view rest = message;
  for (const std::size_t bytes : {kIntBytes, kIntBytes, kIntBytes, hello.task_id.size(), kIntBytes,
                                  classic::CommandName(hello.command).size()}) {
    fiber_.Send(tracker, rest.substr(0, bytes));
    rest.remove_prefix(bytes);
  }
}

Task<int> ClassicWorker::ExchangeRanks(const Descriptor& link) {
  CloseByReset(link);
  SendRank(link, rank_);
  return ReceiveRank(link);
}

Task<bool> ClassicWorker::ConnectTo(classic::Endpoint peer) {
  try {
    Descriptor link =
        co_await fiber_.Connect(MakeAddress(peer.host, static_cast<std::uint16_t>(peer.port)), nullptr);
    const int rank = co_await ExchangeRanks(link);
    if (rank != peer.rank) {
      throw std::runtime_error(
          fmt::format("rank {} answers at {}:{}, expected rank {}", rank, peer.host, peer.port, peer.rank));
    }
    links_.push_back({std::move(link), rank});
    co_return true;
  } catch (const std::system_error&) {
    co_return false;
  }
}

Task<void> ClassicWorker::AcceptFrom(const Descriptor& listener) {
  Descriptor link = co_await fiber_.Accept(listener);
  const int rank = co_await ExchangeRanks(link);
  if (std::any_of(links_.begin(), links_.end(), [&](const Link& made) { return made.rank == rank; })) {
    throw std::runtime_error(fmt::format("a second link from rank {}", rank));
  }
  links_.push_back({std::move(link), rank});
}

Task<void> ClassicWorker::Join(Membership& membership) {
  classic::TrackerStream stream;
  classic::Hello hello;
  hello.task_id = task_id_;
  Descriptor tracker = co_await CallTracker(stream, membership.stage);
  SayHello(tracker, hello);

  membership.stage = Stage::kWaitsForRank;
  std::optional<classic::Assignment> assignment;
  while (!(assignment = stream.NextAssignment())) {
    stream.Append(co_await fiber_.Receive(tracker, kTrackerReadBytes));
  }
  rank_ = assignment->rank;
  Descriptor listener = fiber_.Listen(address_);

  std::optional<classic::LinkPlan> plan;
  classic::LinkErrors errors;
  do {
    classic::GoodLinks good;
    for (const Link& link : links_) good.ranks.push_back(link.rank);
    membership.stage = Stage::kWaitsForPlan;
    Say(tracker, Encode(good));
    while (!(plan = stream.NextLinkPlan()))
      stream.Append(co_await fiber_.Receive(tracker, kTrackerReadBytes));
    membership.stage = Stage::kMakesLinks;
    errors.count = 0;
    for (const classic::Endpoint& peer : plan->connect) {
      if (!co_await ConnectTo(peer)) ++errors.count;
    }
    Say(tracker, Encode(errors));
  } while (errors.count > 0);
  Say(tracker, Encode(classic::ListenPort{ntohs(address_.sin_port)}));
  tracker.reset();

  membership.stage = Stage::kAcceptsLinks;
  for (int i = 0; i < plan->num_accept; ++i) co_await AcceptFrom(listener);
  listener.reset();
  membership.stage = Stage::kLinked;

  membership.rank = assignment->rank;
  membership.parent = assignment->parent;
  membership.world_size = assignment->world_size;
  membership.ring_prev = assignment->ring_prev;
  membership.ring_next = assignment->ring_next;
  for (const int rank : assignment->tree_neighbors) membership.tree.Add(rank);
  for (const Link& link : links_) membership.links.Add(link.rank);
}

Task<void> ClassicWorker::ShutDown(Membership& membership) {
  classic::TrackerStream stream;
  classic::Hello hello;
  hello.rank = membership.rank;
  hello.world_size = membership.world_size;
  hello.task_id = task_id_;
  hello.command = classic::Command::kShutdown;
  const Descriptor tracker = co_await CallTracker(stream, membership.stage);
  SayHello(tracker, hello);
  membership.stage = Stage::kHasShutDown;
}

}  // namespace warren::bench
