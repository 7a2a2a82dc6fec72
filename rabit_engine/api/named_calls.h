// Named operations, which ranks may submit in any order. In cycles, the ranks agree on the operations that
// are ready on all ranks (coordinator/), pack small allreduces, and run all operations in the same order.
// Cycles run on a background thread, or on the thread of a caller that waits for an operation. They use a
// separate communicator, so that other calls need not wait for them.
//
// Errors are EngineError. An error while an operation runs closes the NamedCalls on all ranks, and all
// waiting operations fail with it. If ranks submit different operations under one name, only these operations
// fail.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "rabit_engine/api/pending_call.h"
#include "rabit_engine/api/session.h"
#include "rabit_engine/coordinator/coordinator.h"
#include "rabit_engine/coordinator/participant.h"
#include "rabit_engine/coordinator/tuner.h"

namespace warren::api {

/// The work that a rank submits under a name.
struct NamedWork {
  std::function<void()> run;   ///< runs the work unpacked, on the session of the NamedCalls
  const void* send = nullptr;  ///< input of an allreduce that may be packed
  void* receive = nullptr;     ///< the output of that allreduce
};

/// Thread-safe.
class NamedCalls : public std::enable_shared_from_this<NamedCalls> {
 public:
  /// A collective call on `parent`.
  static std::shared_ptr<NamedCalls> Make(const Call& call, Session& parent, const NamedCallOptions& options);

  NamedCalls(std::shared_ptr<Session> session, const NamedCallOptions& options);
  ~NamedCalls();
  NamedCalls(const NamedCalls&) = delete;
  NamedCalls& operator=(const NamedCalls&) = delete;

  Session& session() { return *session_; }
  /// Throws Misuse if an operation with this name has not ended yet, if this rank has called Close, if it has
  /// called Join and not all ranks have joined yet, or in a forked process; EngineError if the NamedCalls
  /// have ended, with or without an error.
  std::shared_ptr<PendingCall> Add(const Call& call, coordinator::Request request, NamedWork work);
  /// Completes this rank's operations, then contributes neutral elements to the other ranks' operations until
  /// all ranks have joined. Returns the rank, in the job, that joined last. Throws EngineError if the
  /// NamedCalls end first; Misuse if this rank has called Close, if an earlier Join has not ended, in a
  /// forked process, or if called by a completion function.
  int Join(const Call& call);
  /// Closes the NamedCalls on all ranks; operations that are not ready everywhere yet end with an error.
  /// Throws if an error occurs while this call waits for the other ranks, but not if an earlier error had
  /// already closed the NamedCalls. If called by a completion function, returns without waiting. Does nothing
  /// in a forked process.
  void Close();

 private:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;
  class NamedCall;
  struct WaitingCall {
    NamedWork work;
    std::shared_ptr<NamedCall> pending;
    Call call;
    coordinator::Signature signature;
    Clock::time_point added;
    Clock::time_point agreed;
  };

  void StartThread();
  void RequireNoFork(const Call& call) const;
  void RequireOpen(const Call& call) const;
  void Serve();
  template <typename Reached>
  void HelpUntil(Lock& lock, Reached&& reached);
  Clock::time_point Due() const;
  void RunCycle(Lock& lock);
  void Cycle(Lock& lock);
  void Talk(Lock& lock);
  std::uint64_t Run(const std::vector<coordinator::Ready>& batch);
  void RunPacked(const std::vector<coordinator::Ready>& batch,
                 const std::vector<std::optional<WaitingCall>>& taken);
  void RunWithout(const coordinator::Signature& what);
  void ReducePacked(const coordinator::Signature& what, std::size_t count);
  void Tune(std::uint64_t bytes);
  std::vector<std::optional<WaitingCall>> Take(const std::vector<coordinator::Ready>& batch);
  void End(const std::vector<coordinator::Ready>& batch, const std::vector<std::optional<WaitingCall>>& taken,
           const std::exception_ptr& error);
  void End(Lock& lock, const std::string& why, const std::exception_ptr& error);
  double Now() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  static constexpr Call kCall{"named operations"};
  std::shared_ptr<Session> session_;
  std::shared_ptr<Timeline> timeline_;
  const Clock::time_point start_ = Clock::now();
  const std::uint64_t num_forks_;

  std::mutex mutex_;
  std::condition_variable due_;      ///< wakes the thread: there may be work
  std::condition_variable changed_;  ///< wakes callers: a cycle or the thread has ended
  coordinator::Participant participant_;
  std::unordered_map<std::string, WaitingCall> waiting_;
  std::optional<Clock::time_point> first_added_;  ///< when the first addition since the last cycle was made
  bool is_urgent_ = false;                        ///< a caller has begun to wait since the last cycle
  bool is_running_ = false;                       ///< a cycle is running
  bool runs_in_thread_ = false;                   ///< the running cycle runs on the thread
  int num_helpers_ = 0;                           ///< number of callers that wait and run cycles
  Clock::time_point last_cycle_ = start_;         ///< when the last cycle ended
  std::chrono::microseconds idle_{100};           ///< time to the next cycle unless one is needed sooner
  bool joins_ = false;
  std::optional<int> last_joined_;
  bool closes_ = false;
  bool has_thread_ = false;
  std::mutex join_mutex_;
  std::thread thread_;
  std::string over_;          ///< the reason why the NamedCalls have ended; empty while they are open
  std::exception_ptr error_;  ///< the error that ended the NamedCalls, if any

  // Used by the running cycle.
  std::unique_ptr<coordinator::Coordinator> coordinator_;  ///< on rank 0
  std::unique_ptr<coordinator::Tuner> tuner_;              ///< on rank 0, if autotuning
  std::vector<std::byte> packed_;
};

}  // namespace warren::api
