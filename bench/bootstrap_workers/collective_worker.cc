#include "bench/bootstrap_workers/collective_worker.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <stdexcept>

#include "wire/classic.h"

namespace warren::bench {
namespace {

namespace collective = wire::collective;

}  // namespace

CollectiveWorker::CollectiveWorker(EventLoop& loop, int task, const WorkerOptions& options)
    : fiber_(loop),
      options_(&options),
      task_id_(std::to_string(task)),
      address_(AddressOfWorker(options, task)),
      error_address_(address_) {}

/// Sends the length and the text separately, as XGBoost does, unless `whole_messages` is set.
void CollectiveWorker::Say(const Descriptor& tracker, std::string_view message) {
  if (options_->whole_messages) return fiber_.Send(tracker, message);
  fiber_.Send(tracker, message.substr(0, kIntBytes));
  fiber_.Send(tracker, message.substr(kIntBytes));
}

Task<Descriptor> CollectiveWorker::CallTracker(collective::TrackerStream& stream, collective::Hello hello,
                                               Stage& stage) {
  stage = Stage::kConnects;
  Descriptor tracker = co_await fiber_.Connect(options_->tracker, &address_);
  stage = Stage::kGreets;
  fiber_.Send(tracker, wire::classic::EncodeMagic());
  std::optional<std::int32_t> magic;
  while (!(magic = stream.NextMagic())) stream.Append(co_await fiber_.Receive(tracker, kIntBytes));
  if (*magic != wire::kMagic) throw std::runtime_error(fmt::format("the tracker's magic is {:#x}", *magic));
  Say(tracker, Encode(hello));
  co_return tracker;
}

Task<void> CollectiveWorker::MakeRing(Membership& membership, collective::Next next,
                                      const Descriptor& listener) {
  membership.stage = Stage::kMakesLinks;
  next_ = co_await fiber_.Connect(MakeAddress(next.host, static_cast<std::uint16_t>(next.port)), nullptr);
  CloseByReset(next_);
  char raw[kIntBytes];
  std::memcpy(raw, &membership.rank, kIntBytes);
  fiber_.Send(next_, {raw, kIntBytes});
  membership.stage = Stage::kAcceptsLinks;
  prev_ = co_await fiber_.Accept(listener);
  CloseByReset(prev_);
  std::string said;
  while (said.size() < kIntBytes) said += co_await fiber_.Receive(prev_, kIntBytes - said.size());
  std::int32_t prev = 0;
  std::memcpy(&prev, said.data(), kIntBytes);
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
  Descriptor tracker = co_await CallTracker(stream, hello, membership.stage);
  const sockaddr_in own = address_;
  address_.sin_port = error_address_.sin_port = 0;
  const Descriptor listener = fiber_.Listen(address_);
  error_listener_ = fiber_.Listen(error_address_);
  Say(tracker, Encode(collective::Start{ntohs(address_.sin_port), ntohs(error_address_.sin_port)}));

  membership.stage = Stage::kWaitsForRank;
  std::optional<collective::World> world;
  while (!(world = stream.NextWorld())) stream.Append(co_await fiber_.Receive(tracker, kTrackerReadBytes));
  membership.stage = Stage::kWaitsForPlan;
  std::optional<collective::Next> next;
  while (!(next = stream.NextPeer())) stream.Append(co_await fiber_.Receive(tracker, kTrackerReadBytes));
  tracker.reset();
  address_ = own;
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
  const Descriptor tracker = co_await CallTracker(stream, hello, membership.stage);
  Say(tracker, Encode(collective::Shutdown{}));
  membership.stage = Stage::kHasShutDown;
}

}  // namespace warren::bench
