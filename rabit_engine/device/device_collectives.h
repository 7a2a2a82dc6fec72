// The device collectives of one rank. They connect the API to the CUDA part (plugin.h), which does the work,
// and to the communicator, through which the CUDA parts of all ranks find each other and the job survives
// losses.
//
// Without recovery, i.e. before LoadCheckPoint or in jobs that cannot recover, a collective is enqueued on
// its stream and may still be running when the call returns, as with NCCL. Meanwhile a thread checks ten
// times a second whether a rank has been lost; if so, it aborts the work in progress, so that no rank waits
// forever, and the next call reports the loss. With recovery, a call returns when its result is complete and
// kept on the host; if a rank is lost, the surviving ranks and the restarted one create a new group and
// continue with that call (recovery/).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
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

#include "rabit_engine/device/operation.h"
#include "rabit_engine/device/plugin.h"
#include "rabit_engine/recovery/recoverable_communicator.h"

namespace warren::device {

/// Returns the error in a collective's arguments; empty if they are valid.
std::string Complaint(const Operation& call, int rank, int world_size);

struct DeviceOptions {
  std::chrono::seconds timeout{0};  ///< how long to wait for other ranks; 0 waits forever
  bool debug = false;
  bool tls = false;  ///< whether traffic between hosts must be encrypted
};

/// Errors are EngineError (including LostPeer, TimedOut and Misuse). Not thread-safe, except IsReached.
class DeviceCollectives {
 public:
  /// Calls a function unless another call of this rank is in progress; no other call starts while the
  /// function runs. Thread-safe.
  using WhenIdle = std::function<void(const std::function<void()>&)>;

  DeviceCollectives(recovery::RecoverableCommunicator& communicator, const DeviceOptions& options,
                    WhenIdle when_idle);
  /// Waits for the work in progress, unless it can no longer finish.
  ~DeviceCollectives();
  DeviceCollectives(const DeviceCollectives&) = delete;
  DeviceCollectives& operator=(const DeviceCollectives&) = delete;

  /// Chooses a GPU by this rank's index on its host, makes it the thread's current one, and returns its
  /// number.
  int Select();
  /// Runs one collective; in a group, the outermost EndGroup enqueues it on its stream. Throws Refused if a
  /// stream is being captured into a CUDA graph and the call cannot be captured; then its whole group is
  /// refused.
  void Run(const Operation& call);
  /// A position on a stream. It is reached when all work enqueued on the stream before it is done.
  using Mark = std::shared_ptr<void>;
  /// Like Run, and sets a mark after the call. Throws Refused in a group and while the stream is being
  /// captured.
  Mark RunWithMark(const Operation& call);
  /// Whether Wait would return or throw immediately. Thread-safe.
  bool IsReached(const Mark& mark);
  /// Returns when the mark is reached. Throws EngineError if it can no longer be reached, TimedOut if it is
  /// not reached within the timeout.
  void Wait(const Mark& mark);
  void BeginGroup() { ++groups_; }
  /// Ends a group that BeginGroup began. Ending the outermost group enqueues its calls, or throws Refused if
  /// one of them was refused.
  void EndGroup();
  bool in_group() const { return groups_ > 0; }
  /// Returns when all work on the stream is done. Before the first collective and after Finish, returns
  /// immediately, since the stream then holds only the program's own work. Throws Refused in a group;
  /// otherwise like Wait.
  void Synchronize(void* stream);
  /// Returns a description of how collectives run, e.g. "NCCL 2.28.9"; empty before the first collective and
  /// after an error.
  std::string Describe() const;
  /// Ends device collectives. A collective call.
  void Finish();

 private:
  Mark SetMark(void* stream);
  void Execute(std::span<const Operation> calls);
  void RunRecorded(const Operation& call);
  bool IsCaptured(const Operation& call);
  void RequireCapture() const;
  void OpenFor(Communicator& links, const Operation& call);
  void Abort() noexcept;
  /// Does nothing if `said`, a result of the CUDA part, is nullptr; otherwise aborts the group and throws the
  /// error that `said` describes.
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
  std::uint64_t linkings_ = 0;       ///< communicator_.linkings() when the group was made
  Communicator* links_ = nullptr;    ///< the communicator that the CUDA part uses
  std::exception_ptr host_failure_;  ///< the exception thrown by a function of host_
  std::exception_ptr trouble_;       ///< the error that the watching thread found between calls
  std::atomic<bool> has_trouble_ = false;
  Clock::time_point deadline_ = kNoDeadline;
  bool minds_losses_ = true;  ///< whether a lost or late rank ends a wait in the CUDA part
  int groups_ = 0;            ///< number of open groups
  bool group_is_refused_ = false;
  std::vector<Operation> grouped_;

  std::set<void*> streams_;  ///< streams on which collectives may still be in progress
  bool has_graphs_ = false;  ///< whether calls of this group were captured into CUDA graphs
  int suspicions_ = 0;       ///< number of checks that found an NCCL error but no lost rank
  std::mutex watch_mutex_;
  std::condition_variable watch_end_;
  bool watch_ends_ = false;
  std::thread watch_;
};

}  // namespace warren::device
