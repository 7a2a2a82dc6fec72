#include "rabit_engine/device/device_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <system_error>
#include <utility>

#include "rabit_engine/base/error.h"
#include "rabit_engine/base/shortage.h"
#include "rabit_engine/call/slices.h"
#include "rabit_engine/device/device_library.h"
#include "rabit_engine/device/host_reduction.h"

namespace warren::device {
namespace {

constexpr std::chrono::milliseconds kWatchInterval{100};
constexpr int kLooksToName = 20;

}  // namespace

std::string Complaint(const Operation& call, int rank, int world_size) {
  const bool is_known = call.kind == Collective::kAllreduce || call.kind == Collective::kBroadcast ||
                        call.kind == Collective::kAllgather || call.kind == Collective::kReduceScatter;
  if (!is_known) return fmt::format("there is no {} on devices", Name(call.kind));
  const auto type = static_cast<int>(call.type);
  const auto operation = static_cast<int>(call.operation);
  if (type < 0 || type >= kNumTypes)
    return fmt::format("{} is not an element type; see the list in rabit/device.h", type);
  if (operation < 0 || operation >= kNumReduceOps)
    return fmt::format("{} is not an operation; 0 is sum, 1 product, 2 max, 3 min, 4 average", operation);
  if (call.root < 0 || call.root >= world_size)
    return fmt::format("root {} is not a rank; ranks are 0 to {}", call.root, world_size - 1);
  const std::size_t most =
      std::numeric_limits<std::ptrdiff_t>::max() / SizeOf(call.type) / static_cast<std::size_t>(world_size);
  if (call.count > most) return fmt::format("{} elements are more than memory can hold", call.count);
  const bool sends = call.kind != Collective::kBroadcast || call.root == rank;
  if (call.count > 0 && (call.receive == nullptr || (sends && call.send == nullptr)))
    return fmt::format("a buffer of {} elements is NULL", call.count);
  return "";
}

/// Calls `function` for the CUDA part. An exception is kept in host_failure_, since it must not pass through
/// the CUDA part's frames.
template <typename Function>
std::int32_t DeviceCollectives::Help(void* context, Function&& function) {
  auto& self = *static_cast<DeviceCollectives*>(context);
  try {
    function(self);
    return 0;
  } catch (...) {
    self.host_failure_ = std::current_exception();
    return 1;
  }
}

DeviceCollectives::DeviceCollectives(recovery::RecoverableCommunicator& communicator,
                                     const DeviceOptions& options, WhenIdle when_idle)
    : communicator_(communicator),
      timeout_(options.timeout),
      when_idle_(std::move(when_idle)),
      links_(&communicator) {
  host_.context = this;
  host_.rank = communicator.rank();
  host_.world_size = communicator.world_size();
  host_.debug = options.debug ? 1 : 0;
  host_.tls = options.tls ? 1 : 0;
  host_.allgather = [](void* context, void* buffer, std::size_t bytes) {
    return Help(context, [=](DeviceCollectives& self) {
      self.links_->Allgather(buffer, EqualOffsets(self.host_.world_size, bytes));
    });
  };
  host_.broadcast = [](void* context, void* buffer, std::size_t bytes, std::int32_t root) {
    return Help(context, [=](DeviceCollectives& self) { self.links_->Broadcast(buffer, bytes, root); });
  };
  host_.allreduce = [](void* context, void* buffer, std::size_t count, std::int32_t type,
                       std::int32_t operation) {
    return Help(context, [=](DeviceCollectives& self) {
      const auto of = static_cast<Type>(type);
      const auto by = static_cast<ReduceOp>(operation);
      self.links_->Allreduce(buffer, count, HostReduction(of, by));
      if (by == ReduceOp::kAverage) Divide(of, buffer, count, self.host_.world_size);
    });
  };
  host_.check = [](void* context) {
    return Help(context, [](DeviceCollectives& self) {
      if (!self.minds_losses_) return;
      self.links_->LookForLosses();
      self.ThrowIfLate();
    });
  };
}

DeviceCollectives::~DeviceCollectives() {
  {
    const std::lock_guard lock(watch_mutex_);
    watch_ends_ = true;
  }
  watch_end_.notify_all();
  if (watch_.joinable()) watch_.join();
  try {
    for (void* stream : std::set<void*>(streams_)) Synchronize(stream);
  } catch (const EngineError&) {
    // Other ranks are lost, or the stream no longer exists.
  }
  Abort();
}

int DeviceCollectives::Select() {
  devices_ = &LoadDevices();
  std::int32_t device = 0;
  Check(devices_->select(communicator_.local_rank(), &device));
  return device;
}

void DeviceCollectives::Run(const Operation& call) {
  ThrowTrouble();
  devices_ = &LoadDevices();
  if (groups_ == 0) return Execute({&call, 1});
  try {
    if (IsCaptured(call)) RequireCapture();
  } catch (const Refused&) {
    group_is_refused_ = true;
    throw;
  }
  grouped_.push_back(call);
}

void DeviceCollectives::EndGroup() {
  if (--groups_ > 0) return;
  const std::vector<Operation> calls = std::exchange(grouped_, {});
  if (std::exchange(group_is_refused_, false))
    throw Refused("a call of this group was refused, so none of its calls is made");
  if (!calls.empty()) Execute(calls);
}

void DeviceCollectives::Execute(std::span<const Operation> calls) {
  ThrowTrouble();
  const auto captured =
      std::count_if(calls.begin(), calls.end(), [this](const Operation& call) { return IsCaptured(call); });
  if (captured > 0) RequireCapture();
  if (captured > 0 && static_cast<std::size_t>(captured) < calls.size())
    throw Refused("some streams of this group are captured into a CUDA graph, and some are not");
  host_.recovers = communicator_.recovers() ? 1 : 0;
  if (communicator_.recovers()) {
    streams_.clear();  // from now on each call waits for its own work
    for (const Operation& call : calls) RunRecorded(call);
    return;
  }
  StartDeadline();
  OpenFor(communicator_, calls.front());
  Check(devices_->enqueue(group_, calls.data(), calls.size()));
  if (captured > 0) {
    has_graphs_ = true;  // graphs may be launched at any time
  } else {
    for (const Operation& call : calls) streams_.insert(call.stream);
  }
  if (host_.world_size == 1 || watch_.joinable()) return;
  try {
    watch_ = std::thread([this] { Watch(); });
  } catch (const std::system_error& error) {
    ThrowShortage("collectives on devices need a thread of this process", "pthread_create",
                  error.code().value());
  }
}

/// The result goes to the group's memory first, and is kept on the host. Only then is it copied to the
/// program's buffer, so that the input, which may be in the same buffer, stays intact until then. A kept
/// result serves all ranks, so it is the whole result even if ranks get different parts.
void DeviceCollectives::RunRecorded(const Operation& call) {
  Operation whole = call;
  std::size_t offset = 0;
  if (call.kind == Collective::kReduceScatter) {
    whole.kind = Collective::kAllreduce;
    whole.count *= static_cast<std::size_t>(host_.world_size);
    offset = static_cast<std::size_t>(host_.rank) * call.count * SizeOf(call.type);
  }
  const std::size_t bytes = ReceiveBytes(whole, host_.world_size);
  const std::size_t own_bytes = ReceiveBytes(call, host_.world_size);
  const auto put = [&](const void* result) {
    Check(
        devices_->copy(call.receive, static_cast<const std::byte*>(result) + offset, own_bytes, call.stream));
  };
  const std::string name = fmt::format("device {}", Name(call.kind));
  const auto run = [&](Communicator& links) {
    StartDeadline();
    OpenFor(links, call);
    Check(devices_->scratch(group_, std::max<std::size_t>(bytes, 1), &whole.receive));
    Check(devices_->enqueue(group_, &whole, 1));
    Check(devices_->wait(group_, SetMark(call.stream).get()));
  };
  const auto save = [&](void* to) {
    Check(devices_->copy(to, whole.receive, bytes, call.stream));
    put(whole.receive);
  };
  communicator_.RunExternal({name.c_str(), bytes, run, save, put});
}

bool DeviceCollectives::IsCaptured(const Operation& call) {
  std::int32_t captured = 0;
  Check(devices_->is_captured(call.stream, &captured));
  return captured != 0;
}

/// Throws Refused unless calls can be captured into a CUDA graph. Does not communicate: the result is the
/// same on all ranks.
void DeviceCollectives::RequireCapture() const {
  if (communicator_.recovers()) {
    throw Refused(
        "with recovery (after LoadCheckPoint), a device collective waits for its result in order to keep it, so it cannot be captured into a CUDA graph");
  }
  if (group_ == nullptr) {
    throw Refused(
        "the first device collective connects the ranks, which cannot be captured into a CUDA graph: make one before the capture begins");
  }
  if (devices_->captures(group_) == 0) {
    throw Refused(
        fmt::format("device collectives use {} here, which cannot be captured into a CUDA graph; NCCL's can",
                    Describe()));
  }
}

void DeviceCollectives::OpenFor(Communicator& links, const Operation& call) {
  links_ = &links;
  if (group_ != nullptr && linkings_ != communicator_.linkings()) Abort();
  if (group_ != nullptr) return;
  Check(devices_->open(&host_, call.count > 0 ? call.receive : nullptr, &group_));
  linkings_ = communicator_.linkings();
}

/// Without a group, returns an empty mark, which is reached: the results of calls that have been replayed
/// were copied to the device before the calls returned.
DeviceCollectives::Mark DeviceCollectives::SetMark(void* stream) {
  if (group_ == nullptr) return nullptr;
  void* mark = nullptr;
  Check(devices_->set_mark(group_, stream, &mark));
  return {mark, devices_->drop_mark};
}

DeviceCollectives::Mark DeviceCollectives::RunWithMark(const Operation& call) {
  ThrowTrouble();
  devices_ = &LoadDevices();
  if (groups_ > 0) throw Refused("a call in a group has no handle: it starts at the GroupEnd");
  if (IsCaptured(call)) throw Refused("a call that is captured into a CUDA graph has no handle");
  Run(call);
  return SetMark(call.stream);
}

bool DeviceCollectives::IsReached(const Mark& mark) {
  if (has_trouble_ || mark == nullptr) return true;
  std::int32_t reached = 0;
  return devices_->is_reached(mark.get(), &reached) != nullptr || reached != 0;
}

void DeviceCollectives::Synchronize(void* stream) {
  ThrowTrouble();
  if (groups_ > 0) throw Refused("a group is open: its calls start at the GroupEnd, which is missing");
  devices_ = &LoadDevices();
  Wait(SetMark(stream));
  streams_.erase(stream);
}

void DeviceCollectives::Wait(const Mark& mark) {
  ThrowTrouble();
  // A group that a loss has ended is opened again by the next call that runs; with recovery, the work before
  // the mark is done.
  if (mark == nullptr || group_ == nullptr) return;
  StartDeadline();
  // With recovery (after LoadCheckPoint), each collective has waited for its own work, so a lost rank cannot
  // delay this wait.
  minds_losses_ = !communicator_.recovers();
  const std::unique_ptr<bool, void (*)(bool*)> end(&minds_losses_, [](bool* minds) { *minds = true; });
  try {
    Check(devices_->wait(group_, mark.get()));
  } catch (const TimedOut&) {
    // The waits of the other ranks have timed out, too, so every rank that is not stuck reaches this barrier.
    // If a rank is stuck, the barrier's error names it.
    communicator_.Barrier();
    throw TimedOut(fmt::format(
        "the work on the stream has not ended within {} s (rabit_timeout_sec), although no rank is stuck elsewhere",
        timeout_.count()));
  }
}

std::string DeviceCollectives::Describe() const {
  return group_ == nullptr ? "" : devices_->describe(group_);
}

void DeviceCollectives::Finish() {
  if (trouble_ != nullptr || group_ == nullptr || linkings_ != communicator_.linkings()) return Abort();
  StartDeadline();
  links_ = &communicator_;
  streams_.clear();
  devices_->close(std::exchange(group_, nullptr), 0);
}

void DeviceCollectives::Abort() noexcept {
  streams_.clear();
  has_graphs_ = false;
  suspicions_ = 0;
  if (group_ != nullptr) devices_->close(std::exchange(group_, nullptr), 1);
}

void DeviceCollectives::Check(const char* said) {
  if (said == nullptr) return;
  const std::string text = said;
  Abort();
  if (text.empty()) std::rethrow_exception(std::exchange(host_failure_, nullptr));
  links_->GiveUp();
  throw EngineError(text);
}

void DeviceCollectives::ThrowTrouble() {
  if (trouble_ != nullptr) std::rethrow_exception(trouble_);
}

void DeviceCollectives::StartDeadline() {
  deadline_ = timeout_.count() > 0 ? Clock::now() + timeout_ : kNoDeadline;
}

void DeviceCollectives::ThrowIfLate() {
  if (Clock::now() < deadline_) return;
  throw TimedOut(fmt::format("a collective on the device has not ended within {} s (rabit_timeout_sec)",
                             timeout_.count()));
}

void DeviceCollectives::Watch() {
  std::unique_lock lock(watch_mutex_);
  while (!watch_end_.wait_for(lock, kWatchInterval, [this] { return watch_ends_; })) {
    when_idle_([this] { LookOnce(); });
  }
}

/// Runs while no other call of this rank is in progress.
void DeviceCollectives::LookOnce() {
  const bool under_way = !streams_.empty() || has_graphs_;
  if (!under_way || group_ == nullptr || trouble_ != nullptr || communicator_.recovers()) return;
  try {
    communicator_.LookForLosses();
    const char* said = devices_->look(group_);
    // If a rank is gone, NCCL often reports an error before our own links show which rank it is.
    if (said != nullptr && ++suspicions_ < kLooksToName) return;
    Check(said);
  } catch (const EngineError&) {
    trouble_ = std::current_exception();
    has_trouble_ = true;
    Abort();
  }
}

}  // namespace warren::device
