// What lies between Init and Finalize: one rank's communicator and checkpoints, and the rules that all faces
// share. Which thread speaks for which rank, what may be called when, which arguments make sense, what an
// error says.
//
// Errors are EngineError; faces turn them into their own. Their messages start "rank R: <call> (<where>): ".
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rabit_engine/api/call_queue.h"
#include "rabit_engine/base/timeline.h"
#include "rabit_engine/bootstrap/bootstrap.h"
#include "rabit_engine/device/device_collectives.h"
#include "rabit_engine/recovery/recoverable_communicator.h"
#include "rabit_engine/reduce/reduction.h"

namespace warren::api {

/// What the caller wants of one call.
struct CallOptions {
  std::string name;                      ///< for messages and the timeline; empty: the call's is enough
  std::chrono::milliseconds timeout{0};  ///< for a rank that lives; 0: the communicator's
};

/// The call that is being served.
struct Call {
  const char* name;  ///< as the user wrote it: "rabit::Allreduce"
  // Where the user wrote it; null or 0 where that is not known.
  const char* file = nullptr;
  int line = 0;
  const char* function = nullptr;
  const CallOptions* options = nullptr;  ///< null: none
};

/// Fills the buffer before a reduction, if `function` is set.
struct Prepare {
  void (*function)(void*) = nullptr;
  void* argument = nullptr;
};

/// How named operations work, where a program does not say so itself; see Settings.
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

/// Which session a thread uses that has not called Init.
enum class Threads {
  kShare,    ///< the process's, if there is just one
  kSeparate  ///< no session: the thread has not joined a job
};

class Session {
 public:
  /// Joins the job for this thread unless it has joined already: that of the tracker or bootstrap which the
  /// settings name, else that of the launcher which started this process, else one of this process alone.
  static void Init(const Call& call, int argc, const char* const* argv);
  /// The session this thread uses, or null.
  static std::shared_ptr<Session> Find(Threads threads);
  /// The session this thread uses. Throws Misuse if it has none.
  static std::shared_ptr<Session> Require(const Call& call, Threads threads);
  /// A session of ranks that meet over this bootstrap, of no thread in particular. Each rank leaves it by
  /// itself, when it destroys its own.
  static std::shared_ptr<Session> Meet(const Call& call, std::unique_ptr<Bootstrap> bootstrap);
  /// Ends this thread's session, if it has one. False if an error had ended the job before.
  static bool Finalize(const Call& call, Threads threads);

  explicit Session(std::unique_ptr<recovery::RecoverableCommunicator> communicator,
                   SessionOptions options = {});

  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const SessionOptions& options() const { return options_; }
  /// For who writes there what its calls are for.
  void StayOffTimeline() { timeline_ = nullptr; }
  /// Calls the function before this session, or that of the world it was made of, ends; of those that are
  /// there when that happens.
  void BeforeFinalize(std::weak_ptr<void> whose, std::function<void()> function);
  /// How long calls from the next one on may wait for a rank that lives, instead of rabit_timeout. Nothing
  /// where there are no timeouts.
  void SetTimeout(std::chrono::milliseconds timeout) { communicator_->SetCallTimeout(timeout); }
  /// The same for all calls without a timeout of their own; seconds as in CallOptions.
  void SetUsualTimeout(const Call& call, double seconds);
  int rank() const { return rank_; }
  int world_size() const { return world_size_; }
  /// This session's communicator as messages call it.
  const std::string& name() const { return name_; }
  /// The lowest rank on the host of each rank here.
  std::vector<int> Hosts(const Call& call);
  /// What a rank here is in the job.
  int RankInJob(const Call& call, int rank) const;
  /// A session of the ranks that give the same color, in the order of their keys; null for a negative color.
  /// Its calls may be made while others of other sessions are under way. It ends when it is destroyed.
  std::shared_ptr<Session> Split(const Call& call, int color, int key);
  /// The same of these ranks, in this order, which call it while others need not. See Communicator::Group.
  std::shared_ptr<Session> Group(const Call& call, std::span<const int> ranks, const std::string& name,
                                 OobAllgather& members);
  std::unique_ptr<TaggedMessages> MakeMailbox(const Call& call);
  int ring_prev_rank() const { return (rank_ + world_size_ - 1) % world_size_; }
  bool is_distributed() const { return is_distributed_; }
  const std::string& host() const { return host_; }

  void Allreduce(const Call& call, void* buffer, std::size_t count, const Reduction& reduction,
                 Prepare prepare);
  /// Whether these codes of rabit's, of an element type and an operation, name a reduction of the engine's.
  static bool KnowsReduction(int type, int operation);
  /// The same as Allreduce with rabit's codes for element types and operations.
  void AllreduceTyped(const Call& call, void* buffer, std::size_t count, int type, int operation,
                      Prepare prepare);
  void Broadcast(const Call& call, void* buffer, std::size_t bytes, int root);
  /// This rank's slice is [begin, end) of `total`, all in bytes.
  void Allgather(const Call& call, void* buffer, std::size_t total, std::size_t begin, std::size_t end);
  /// The same in elements; `size_or_end` is the size of the slice or its end, whichever makes all ranks'
  /// slices meet.
  void AllgatherSlice(const Call& call, void* buffer, std::size_t element_bytes, std::size_t total,
                      std::size_t begin, std::size_t size_or_end);
  /// Of one slice a rank, in rank order: rank r's is [offsets[r], offsets[r + 1]), in bytes, as world_size()
  /// + 1 offsets, the same on all ranks.
  void Allgather(const Call& call, void* buffer, std::span<const std::size_t> offsets);
  /// Like an allreduce of which only this rank's slice holds the result afterwards, and the rest of the
  /// buffer is left undefined. Offsets as above, in elements.
  void ReduceScatter(const Call& call, void* buffer, std::span<const std::size_t> offsets,
                     const Reduction& reduction);
  /// Like an allreduce of which only the root's buffer holds the result; the others' is left undefined.
  void Reduce(const Call& call, void* buffer, std::size_t count, const Reduction& reduction, int root);
  void Barrier(const Call& call);
  // See Communicator; all in bytes.
  void Gather(const Call& call, const void* data, std::size_t bytes, void* buffer,
              std::span<const std::size_t> offsets, int root);
  void Scatter(const Call& call, const void* buffer, std::span<const std::size_t> offsets, void* data,
               std::size_t bytes, int root);
  void AllToAll(const Call& call, const void* from, std::span<const std::size_t> sent, void* to,
                std::span<const std::size_t> received);
  void SendReceive(const Call& call, std::span<const Outbound> sends, std::span<const Inbound> receives);
  /// The typed reduction of rabit's codes. Refuses codes that are none.
  Reduction TypedReduction(const Call& call, int type, int operation) const;
  void TrackerPrint(const Call& call, const std::string& text);

  /// Runs `work`, which makes calls of this session, after all that was enqueued before; other calls wait
  /// until nothing is left. Returns at once.
  std::shared_ptr<PendingCall> Enqueue(const Call& call, std::function<void()> work);

  // --- memory of GPUs: see device/device_collectives.h ---

  void OnDevice(const Call& call, const device::Collective& collective);
  using DeviceMark = device::DeviceCollectives::Mark;
  DeviceMark OnDeviceWithMark(const Call& call, const device::Collective& collective);
  bool IsDeviceReached(const DeviceMark& mark);
  void DeviceWait(const Call& call, const DeviceMark& mark);
  void DeviceGroupStart(const Call& call);
  void DeviceGroupEnd(const Call& call);
  void DeviceSynchronize(const Call& call, void* stream);
  int SelectDevice(const Call& call);
  std::string DescribeDevices(const Call& call);

  /// The size of an element of rabit's type with this code.
  std::size_t ElementBytes(const Call& call, int type) const;

  /// How many versions have been ended.
  int version() const { return version_; }
  /// A checkpoint as its user gets it. The references hold until the next.
  struct Loaded {
    int version;
    const std::string* global;  ///< where it was asked for
    const std::string* local;
  };
  /// The newest checkpoint, or nothing when there is none. Misuse when there is one, but not of the models
  /// that are asked for.
  std::optional<Loaded> LoadCheckPoint(const Call& call, bool want_global, bool want_local);
  void CheckPoint(const Call& call, std::optional<std::string> global, std::optional<std::string> local);
  void LazyCheckPoint(const Call& call, recovery::Models::Serializer serialize);
  /// Leaves the communicator after an error outside of its calls: the others are told.
  void GiveUp(const std::string& why) noexcept;
  /// How messages about a call of this session begin: "rank 3: WarrenAllreduce".
  std::string Where(const Call& call) const;
  /// For CallOptions, of what a caller gives. Refuses what is none, and any where there can be none.
  std::chrono::milliseconds Timeout(const Call& call, double seconds) const;
  /// The answer to a call that was made wrongly.
  [[noreturn]] void Refuse(const Call& call, const std::string& what) const;

  // What a call checks first; for those that are made now and carried out later.
  void CheckBuffer(const Call& call, const void* buffer, std::size_t count, std::size_t element_bytes) const {
    const bool is_missing = buffer == nullptr && count > 0;
    const bool is_too_much =
        element_bytes != 0 && count > std::numeric_limits<std::ptrdiff_t>::max() / element_bytes;
    if (is_missing || is_too_much) [[unlikely]] {
      RefuseBuffer(call, buffer, count, element_bytes);
    }
  }
  void CheckRoot(const Call& call, int root) const;
  void CheckOffsets(const Call& call, const void* buffer, std::span<const std::size_t> offsets,
                    std::size_t element_bytes) const;
  void CheckGather(const Call& call, const void* data, std::size_t bytes, const void* buffer,
                   std::span<const std::size_t> offsets, int root) const;
  void CheckAllToAll(const Call& call, const void* from, std::span<const std::size_t> sent, const void* to,
                     std::span<const std::size_t> received) const;
  void CheckPeer(const Call& call, int peer, const void* data, std::size_t bytes) const;

 private:
  [[noreturn]] void RefuseBuffer(const Call& call, const void* buffer, std::size_t count,
                                 std::size_t element_bytes) const;
  [[noreturn]] void RefuseReduction(const Call& call, int type, int operation) const;
  void CheckDeviceCall(const Call& call, const device::Collective& collective) const;
  void CheckOwnSlice(const Call& call, std::span<const std::size_t> offsets, std::size_t bytes) const;
  // While it lives, this thread has the communicator to itself. Misuse when another has it.
  class Turn {
   public:
    Turn(Session& session, const Call& call);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Session& session_;
  };

  bool IsReplayed() const;
  device::DeviceCollectives& Devices();
  void WhenIdle(const std::function<void()>& function);
  // Runs something that needs the communicator; nothing after an error.
  template <typename Function>
  void Communicate(const Call& call, Function&& function);
  void CountAsMet();
  std::shared_ptr<Session> MadeOf(std::unique_ptr<Communicator> group) const;

  class Record;
  class Patience;

  void AddToTimeline(const Call& call, Timeline::Clock::time_point begin) const;
  void AwaitPendingCalls();
  void RunEndings();

  std::shared_ptr<CallQueue> call_queue_ = std::make_shared<CallQueue>();
  std::atomic<bool> has_queued_ = false;  ///< had some, ever: until then nobody asks the queue
  std::unique_ptr<recovery::RecoverableCommunicator> communicator_;
  std::unique_ptr<device::DeviceCollectives> devices_;  ///< made when first asked for
  SessionOptions options_;
  Timeline* timeline_;  ///< or nobody wants one
  struct Endings {
    std::mutex mutex;
    std::vector<std::pair<std::weak_ptr<void>, std::function<void()>>> functions;
  };
  std::shared_ptr<Endings> endings_ = std::make_shared<Endings>();  ///< those made of one world share them
  std::atomic<int> version_ = 0;                                    // for threads that only ask
  int rank_;
  int world_size_;
  bool is_distributed_;
  bool has_timeouts_;
  std::string host_;
  std::string name_;
  std::string place_;  ///< "rank 3", as messages begin
  std::vector<int> ranks_in_job_;
  std::atomic_flag busy_;
  std::chrono::milliseconds usual_timeout_{0};  ///< 0: the communicator's
  std::atomic<bool> looked_into_ = false;       ///< WhenIdle may have made it busy, for a moment
  bool has_met_ = false;                        ///< Meet made it, or it is of one that Meet made
  bool prepares_ = false;                       ///< the prepare function of an allreduce runs
  std::string first_error_;                     // empty while all is well
};

}  // namespace warren::api
