// A session is one rank's part in a job, from Init to Finalize, with its communicator and checkpoints, or its
// part in another communicator. It implements the rules that all APIs share: which thread uses which rank,
// what may be called when, which arguments are valid, and what errors say.
//
// Errors are EngineError; the APIs translate them to their own types. Messages about a session's calls start
// with "rank R: <call> (<file>:<line> in <function>): "; the call site is left out if it is unknown. "rank R"
// is followed by the communicator unless the communicator is the world.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rabit_engine/api/call_queue.h"
#include "rabit_engine/base/timeline.h"
#include "rabit_engine/bootstrap/bootstrap.h"
#include "rabit_engine/call/operation.h"
#include "rabit_engine/device/device_collectives.h"
#include "rabit_engine/recovery/recoverable_communicator.h"
#include "rabit_engine/reduce/reduction.h"

namespace warren::api {

/// A caller's options for one call.
struct CallOptions {
  std::string name;                      ///< name in messages and the timeline; if empty, the call's name
  std::chrono::milliseconds timeout{0};  ///< limit for a rank that is alive but late; 0: the usual timeout
};

/// The call being served.
struct Call {
  const char* name;  ///< as users know it: "rabit::Allreduce"
  // The call site; null or 0 if unknown.
  const char* file = nullptr;
  int line = 0;
  const char* function = nullptr;
  const CallOptions* options = nullptr;  ///< null: defaults
};

/// Fills the buffer before a reduction, if `function` is set.
struct Prepare {
  void (*function)(void*) = nullptr;
  void* argument = nullptr;
};

/// Options for named operations: the values in Settings, unless the program passes its own.
struct NamedCallOptions {
  std::size_t fusion_bytes = std::size_t{2} << 20;
  std::chrono::microseconds cycle{1000};
  bool autotune = false;
  double warns_after = 60;  ///< seconds
  double fails_after = 0;   ///< 0: never
};

struct SessionOptions {
  device::DeviceOptions device;
  NamedCallOptions named;
  std::shared_ptr<Timeline> timeline;  ///< null if no timeline is written
};

/// The session that is used by a thread that has not called Init.
enum class Threads {
  kShare,    ///< the process's session, if it has exactly one
  kSeparate  ///< no session: the thread has not joined a job
};

class Session {
 public:
  /// Joins a job for this thread unless the thread has joined one already: the job of the tracker, bootstrap
  /// or MPI engine in the settings, else the job of the launcher that started this process, else a job of
  /// this process alone. If the process was started in a role other than worker, exits with 0.
  static void Init(const Call& call, int argc, const char* const* argv);
  /// Returns the session this thread uses, or null.
  static std::shared_ptr<Session> Find(Threads threads);
  /// Returns the session this thread uses. Throws Misuse if the thread has no session, or in a process that
  /// was forked while sessions existed.
  static std::shared_ptr<Session> Require(const Call& call, Threads threads);
  /// Makes a session of the ranks that meet over this bootstrap; the session is not bound to a thread. Each
  /// rank leaves independently, by destroying its session.
  static std::shared_ptr<Session> Meet(const Call& call, std::unique_ptr<Bootstrap> bootstrap);
  /// Ends the session this thread uses, if there is one. Returns false if an error had already ended the job.
  /// Does nothing in a forked process.
  static bool Finalize(const Call& call, Threads threads);

  explicit Session(std::unique_ptr<recovery::RecoverableCommunicator> communicator,
                   SessionOptions options = {});

  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const SessionOptions& options() const { return options_; }
  /// Stops recording calls on the timeline; the caller records them itself.
  void StayOffTimeline() { timeline_ = nullptr; }
  /// Registers a function that Finalize calls before it ends the world's session (this session, or the
  /// session from which this one was made). The function is not called if `whose` has expired by then.
  void BeforeFinalize(std::weak_ptr<void> whose, std::function<void()> function);
  /// Sets the time for which calls may wait for a rank that is alive, up to the next call that has options;
  /// overrides rabit_timeout_sec. Does nothing if the engine has no timeouts.
  void SetTimeout(std::chrono::milliseconds timeout) { communicator_->SetCallTimeout(timeout); }
  /// Sets the timeout of calls whose options have none. `seconds`: see Timeout.
  void SetUsualTimeout(const Call& call, double seconds);
  int rank() const { return rank_; }
  int world_size() const { return world_size_; }
  /// The name of this session's communicator in messages.
  const std::string& name() const { return name_; }
  /// Returns, for each rank, a number that identifies its host.
  std::vector<int> Hosts(const Call& call);
  /// Translates a rank of this session to its rank in the job.
  int RankInJob(const Call& call, int rank) const;
  /// Makes a session of the ranks that pass the same color, ordered by key, then by rank. A collective call.
  /// Returns null if `color` is negative. Different sessions may have calls in progress at the same time. The
  /// session ends when it is destroyed.
  std::shared_ptr<Session> Split(const Call& call, int color, int key);
  /// Makes a session of these ranks, in this order; only these ranks make the call. See Communicator::Group.
  std::shared_ptr<Session> Group(const Call& call, std::span<const int> ranks, const std::string& name,
                                 OobAllgather& members);
  std::unique_ptr<TaggedMessages> MakeMailbox(const Call& call);
  int ring_prev_rank() const { return (rank_ + world_size_ - 1) % world_size_; }
  bool is_distributed() const { return is_distributed_; }
  const std::string& host() const { return host_; }

  /// Runs any operation, including averages and reductions from one buffer to another.
  void Run(const Call& call, const Operation& operation);
  /// Refuses the operation if Complaint finds an error in it. Run does this too; asynchronous calls are
  /// checked before they are enqueued.
  void Check(const Call& call, const Operation& operation) const {
    if (!IsPlainlyValid(operation)) CheckClosely(call, operation);
  }
  /// Calls `prepare`, unless the result is already known, then runs an allreduce in place. Gives up and
  /// rethrows if `prepare` throws.
  void Allreduce(const Call& call, void* buffer, std::size_t count, const Reduction& reduction,
                 Prepare prepare);
  /// Whether these rabit codes, of an element type and an operation, name a built-in reduction.
  static bool KnowsReduction(int type, int operation);
  /// Like Allreduce, with rabit's codes for the element type and the operation.
  void AllreduceTyped(const Call& call, void* buffer, std::size_t count, int type, int operation,
                      Prepare prepare);
  /// An allgather with positions in elements. `size_or_end` is the slice's size or its end, whichever makes
  /// the ranks' slices contiguous.
  void AllgatherSlice(const Call& call, void* buffer, std::size_t element_bytes, std::size_t total,
                      std::size_t begin, std::size_t size_or_end);
  /// Returns the typed reduction for rabit's codes. Refuses invalid codes.
  Reduction TypedReduction(const Call& call, int type, int operation) const;
  void TrackerPrint(const Call& call, const std::string& text);

  /// Enqueues `work`, which makes calls on this session and runs after all work enqueued before. Calls that
  /// are made directly wait until the queue is empty.
  std::shared_ptr<PendingCall> Enqueue(const Call& call, std::function<void()> work);

  // --- device memory: see device/device_collectives.h ---

  void OnDevice(const Call& call, const device::Operation& operation);
  using DeviceMark = device::DeviceCollectives::Mark;
  DeviceMark OnDeviceWithMark(const Call& call, const device::Operation& operation);
  bool IsDeviceReached(const DeviceMark& mark);
  void DeviceWait(const Call& call, const DeviceMark& mark);
  void DeviceGroupStart(const Call& call);
  void DeviceGroupEnd(const Call& call);
  void DeviceSynchronize(const Call& call, void* stream);
  int SelectDevice(const Call& call);
  std::string DescribeDevices(const Call& call);

  /// Returns the size in bytes of an element of this type, one of rabit's codes. Refuses invalid codes.
  std::size_t ElementBytes(const Call& call, int type) const;

  /// The number of checkpoints that the job has made; in a restarted process, 0 before LoadCheckPoint.
  int version() const { return version_; }
  /// A checkpoint. The pointers are valid until the next checkpoint. Each is null unless its model was
  /// requested.
  struct Loaded {
    int version;
    const std::string* global;
    const std::string* local;
  };
  /// Returns the newest checkpoint, or nullopt before the first one. Throws Misuse if it lacks a requested
  /// model.
  std::optional<Loaded> LoadCheckPoint(const Call& call, bool want_global, bool want_local);
  /// Both refuse a checkpoint with a local model if the first load or checkpoint had none, and the reverse.
  void CheckPoint(const Call& call, std::optional<std::string> global, std::optional<std::string> local);
  void LazyCheckPoint(const Call& call, recovery::Models::Serializer serialize);
  /// Leaves the communicator after an error outside its calls, and informs the other ranks. Has no effect if
  /// CallLock throws (another thread is in a call, or this process is forked) or an earlier call has failed.
  void GiveUp(const std::string& why) noexcept;
  /// Returns the beginning of messages about a call of this session: "rank 3: WarrenAllreduce".
  std::string Where(const Call& call) const;
  /// Converts a caller's seconds to CallOptions::timeout. Refuses invalid values, and any but 0 if the engine
  /// has no timeouts.
  std::chrono::milliseconds Timeout(const Call& call, double seconds) const;
  /// Throws Misuse with a message that names the call and ends with `what`.
  [[noreturn]] void Refuse(const Call& call, const std::string& what) const;

 private:
  [[noreturn]] void RefuseReduction(const Call& call, int type, int operation) const;
  void CheckClosely(const Call& call, const Operation& operation) const;
  void CheckDeviceCall(const Call& call, const device::Operation& operation) const;
  // Gives this thread exclusive use of the communicator during the lock's lifetime. Waits while WhenIdle uses
  // the communicator and, once calls have been enqueued, while any other thread uses it; before any call has
  // been enqueued, throws Misuse if another thread uses it. Always throws Misuse in a forked process, and in
  // a function that a call of this session runs.
  class CallLock {
   public:
    CallLock(Session& session, const Call& call);
    ~CallLock();
    CallLock(const CallLock&) = delete;
    CallLock& operator=(const CallLock&) = delete;

   private:
    Session& session_;
  };

  // Refuses a call that this thread makes within another call of this session, which it could only wait for
  // forever.
  void RefuseInsideCall(const Call& call) const;
  bool IsReplayed() const;
  device::DeviceCollectives& Devices();
  void WhenIdle(const std::function<void()>& function);
  // Runs `function`, which needs the communicator. Throws if an earlier call has failed.
  template <typename Function>
  void Communicate(const Call& call, Function&& function);
  void CheckLocalModel(const Call& call, bool has_local);
  void CompareOffsets(const Call& call, std::span<const std::size_t> offsets);
  void CountAsMet();
  std::shared_ptr<Session> Wrap(std::unique_ptr<Communicator> group) const;

  class ScopedTrace;
  class ScopedTimeout;

  void AddToTimeline(const Call& call, Timeline::Clock::time_point begin) const;
  void AwaitPendingCalls(const Call& call);
  void RunEndings();

  std::shared_ptr<CallQueue> call_queue_ = std::make_shared<CallQueue>();
  /// Whether any call has been enqueued; until then, the queue need not be drained.
  std::atomic<bool> has_queued_ = false;
  std::unique_ptr<recovery::RecoverableCommunicator> communicator_;
  std::unique_ptr<device::DeviceCollectives> devices_;  ///< made on first use
  SessionOptions options_;
  Timeline* timeline_;  ///< null if calls are not recorded
  struct Endings {
    std::mutex mutex;
    std::vector<std::pair<std::weak_ptr<void>, std::function<void()>>> functions;
  };
  /// Shared by all sessions made from one world.
  std::shared_ptr<Endings> endings_ = std::make_shared<Endings>();
  std::atomic<int> version_ = 0;  // atomic, because other threads may read it
  struct LocalModelUse {
    const char* call;
    bool has_local;
  };
  /// The first load, or checkpoint with models, and whether it had a local model.
  std::optional<LocalModelUse> local_model_use_;
  int rank_;
  int world_size_;
  bool is_distributed_;
  bool has_timeouts_;
  std::string host_;
  std::string name_;
  std::string place_;  ///< the beginning of messages: "rank 3"
  std::vector<int> ranks_in_job_;
  std::atomic_flag busy_;
  std::atomic<std::thread::id> caller_;         ///< the thread that is in a call; none between calls
  std::chrono::milliseconds usual_timeout_{0};  ///< 0: the communicator's default
  /// Incremented when WhenIdle begins and when it ends: odd while WhenIdle may hold busy_.
  std::atomic<std::uint64_t> idle_turns_ = 0;
  bool has_met_ = false;     ///< made by Meet, or from a session that was
  bool prepares_ = false;    ///< the prepare function of an allreduce is running
  std::string first_error_;  // empty until a call fails
};

}  // namespace warren::api
