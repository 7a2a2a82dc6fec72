// The device collectives of one rank: between the faces, the CUDA part (plugin.h), which does the work, and
// the communicator, over which the CUDA parts of all ranks find each other and by which a job survives.
//
// Before LoadCheckPoint a collective is put on its stream and may still run when the call returns, as with
// NCCL. Meanwhile a thread looks, ten times a second, whether a rank is lost; then it breaks off what is
// under way, so that nobody waits for ever, and the next call says so. After LoadCheckPoint a call returns
// when its result is there and kept on the host; when a rank is lost, the ranks that are left and the one
// that was started again make a new group and go on with that call (recovery/).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "rabit_engine/device/collective.h"
#include "rabit_engine/device/plugin.h"
#include "rabit_engine/recovery/recoverable_communicator.h"

namespace warren::device {

/// What is wrong with a collective's arguments; empty when nothing is.
std::string Complaint(const Collective& call, int rank, int world_size);

struct DeviceOptions {
  std::chrono::seconds timeout{0};  ///< how long to wait for other ranks; 0: for ever
  bool debug = false;
  bool tls = false;  ///< what goes to other hosts has to be encrypted
};

/// Errors are EngineError (LostPeer, TimedOut, Misuse). Not thread safe.
class DeviceCollectives {
 public:
  /// Calls a function at a moment when no other call of this rank is under way, or does nothing when there is
  /// one. From any thread.
  using WhenIdle = std::function<void(const std::function<void()>&)>;

  DeviceCollectives(recovery::RecoverableCommunicator& communicator, const DeviceOptions& options,
                    WhenIdle when_idle);
  /// Waits for what is under way, unless that cannot end any more.
  ~DeviceCollectives();
  DeviceCollectives(const DeviceCollectives&) = delete;
  DeviceCollectives& operator=(const DeviceCollectives&) = delete;

  /// The GPU for this rank by its place on its host, which becomes the thread's current one.
  int Select();
  /// One collective, or, after BeginGroup, one to be put on its stream by the EndGroup that matches it.
  /// Refused where a stream is captured into a CUDA graph and that cannot be; then its group is, too.
  void Run(const Collective& call);
  /// Somewhere on a stream; what was put there before is done when it is reached.
  using Mark = std::shared_ptr<void>;
  /// The same as Run, with a mark behind it. Refused in a group and where the stream is captured.
  Mark RunWithMark(const Collective& call);
  /// Whether Wait would not have to wait. From any thread.
  bool IsReached(const Mark& mark);
  /// Returns when the mark is reached, or throws when it cannot be any more.
  void Wait(const Mark& mark);
  void BeginGroup() { ++groups_; }
  /// A group has to have been begun.
  void EndGroup();
  bool in_group() const { return groups_ > 0; }
  /// Returns when all work of the stream is done, or throws when it cannot be any more.
  void Synchronize(void* stream);
  /// How collectives run: "NCCL 2.28.9"; empty before the first.
  std::string Describe() const;
  /// The ranks end together.
  void Finish();

 private:
  Mark SetMark(void* stream);
  void Execute(std::span<const Collective> calls);
  void RunRecorded(const Collective& call);
  bool IsCaptured(const Collective& call);
  void RequireCapture() const;
  void OpenFor(Communicator& links, const Collective& call);
  void Abort() noexcept;
  /// Throws what a text of the CUDA part stands for; nothing for nullptr.
  void Check(const char* said);
  void ThrowTrouble();
  void ThrowIfLate();
  void StartDeadline();
  void Watch();
  void LookOnce();
  template <typename Function>
  static std::int32_t Help(void* context, Function&& function);

  recovery::RecoverableCommunicator& communicator_;
  std::chrono::seconds timeout_;
  WhenIdle when_idle_;
  const WarrenDevices* devices_ = nullptr;
  WarrenDeviceHost host_{};
  WarrenDeviceGroup* group_ = nullptr;
  std::uint64_t linkings_ = 0;       ///< those that the group was made over
  Communicator* links_ = nullptr;    ///< what the CUDA part talks over
  std::exception_ptr host_failure_;  ///< of a function of host_
  std::exception_ptr trouble_;       ///< found while nobody called
  std::atomic<bool> has_trouble_ = false;
  Clock::time_point deadline_ = kNoDeadline;
  bool minds_losses_ = true;  ///< whether the call that waits is one that a loss breaks off
  int groups_ = 0;            ///< begun and not ended
  bool group_is_refused_ = false;
  std::vector<Collective> grouped_;

  std::set<void*> streams_;  ///< that may have collectives under way which nobody has waited for
  bool has_graphs_ = false;  ///< captured ones
  int suspicions_ = 0;       ///< how often NCCL has had an error that no lost rank explains
  std::mutex watch_mutex_;
  std::condition_variable watch_end_;
  bool watch_ends_ = false;
  std::thread watch_;
};

}  // namespace warren::device
