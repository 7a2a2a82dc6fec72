#include "bench/bootstrap_workers/collective_worker.h"

#include <arpa/inet.h>

#include <optional>

namespace warren::bench {
namespace {

namespace collective = wire::collective;

}  // namespace

/// Sends the length and the text separately, as XGBoost does, unless `whole_messages` is set.
void CollectiveWorker::Say(const Descriptor& tracker, std::string_view message) {
  if (options_->whole_messages) return fiber_.Send(tracker, message);
  fiber_.Send(tracker, message.substr(0, kIntBytes));
  fiber_.Send(tracker, message.substr(kIntBytes));
}

Task<void> CollectiveWorker::MakeRing(Membership& membership, collective::Next next,
                                      const Descriptor& listener) {
  membership.stage = Stage::kMakesLinks;
  next_ = co_await fiber_.Connect(MakeAddress(next.host, static_cast<std::uint16_t>(next.port)), nullptr);
  CloseByReset(next_);
  SendRank(next_, membership.rank);
  membership.stage = Stage::kAcceptsLinks;
  prev_ = co_await fiber_.Accept(listener);
  CloseByReset(prev_);
  const int prev = co_await ReceiveRank(prev_);
  membership.ring_next = next.rank;
  membership.ring_prev = prev;
  membership.links.Add(next.rank);
  if (prev != next.rank) membership.links.Add(prev);
}

Task<void> CollectiveWorker::Join(Membership& membership) {
  collective::TrackerStream stream;
  collective::Hello hello;
  hello.rank = 0;
  hello.task_id = task_id_;
  Descriptor tracker = co_await CallTracker(stream, membership.stage);
  Say(tracker, Encode(hello));
  sockaddr_in error_address = address_;
  const Descriptor listener = fiber_.Listen(address_);
  error_listener_ = fiber_.Listen(error_address);
  Say(tracker, Encode(collective::Start{ntohs(address_.sin_port), ntohs(error_address.sin_port)}));

  membership.stage = Stage::kWaitsForRank;
  std::optional<collective::World> world;
  while (!(world = stream.NextWorld())) stream.Append(co_await fiber_.Receive(tracker, kTrackerReadBytes));
  membership.stage = Stage::kWaitsForPlan;
  std::optional<collective::Next> next;
  while (!(next = stream.NextPeer())) stream.Append(co_await fiber_.Receive(tracker, kTrackerReadBytes));
  tracker.reset();
  membership.world_size = world->size;
  membership.rank = (next->rank + world->size - 1) % world->size;
  if (world->size > 1) co_await MakeRing(membership, *next, listener);
  membership.stage = Stage::kLinked;
}

Task<void> CollectiveWorker::ShutDown(Membership& membership) {
  collective::TrackerStream stream;
  collective::Hello hello;
  hello.rank = membership.rank;
  hello.world_size = membership.world_size;
  hello.task_id = task_id_;
  const Descriptor tracker = co_await CallTracker(stream, membership.stage);
  Say(tracker, Encode(hello));
  Say(tracker, Encode(collective::Shutdown{}));
  membership.stage = Stage::kHasShutDown;
}

}  // namespace warren::bench
