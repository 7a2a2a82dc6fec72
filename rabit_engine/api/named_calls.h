// Operations that each rank gives by name, in any order: a thread takes part in the cycles in which the ranks
// agree on what is ready everywhere (coordinator/), packs what is small, and runs it, in the same order on
// all ranks. It has a communicator of its own, so that nothing else has to wait.
//
// Errors are EngineError. An error of the engine ends it for all ranks, and all that waits gets it; one that
// ranks find in what they call by a name is that name's alone.
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
#include <unordered_map>
#include <vector>

#include "rabit_engine/api/pending_call.h"
#include "rabit_engine/api/session.h"
#include "rabit_engine/coordinator/coordinator.h"
#include "rabit_engine/coordinator/participant.h"
#include "rabit_engine/coordinator/tuner.h"

namespace warren::api {

/// What a rank gives under a name.
struct NamedWork {
  std::function<void()> run;   ///< alone, on the session of the NamedCalls
  const void* send = nullptr;  ///< of an allreduce that may be packed with others
  void* receive = nullptr;     ///< of the same
};

/// Thread safe.
class NamedCalls : public std::enable_shared_from_this<NamedCalls> {
 public:
  /// All ranks of `parent` call it.
  static std::shared_ptr<NamedCalls> Make(const Call& call, Session& parent, const NamedCallOptions& options);

  NamedCalls(std::shared_ptr<Session> session, const NamedCallOptions& options);
  ~NamedCalls();
  NamedCalls(const NamedCalls&) = delete;
  NamedCalls& operator=(const NamedCalls&) = delete;

  Session& session() { return *session_; }
  /// Misuse when the name is waiting already, EngineError after an error or the end.
  std::shared_ptr<PendingCall> Add(const Call& call, coordinator::Request request, NamedWork work);
  /// Waits until all ranks have joined, and meanwhile takes part in their sums with elements that change
  /// nothing; what this rank gave comes first. The last to join.
  int Join(const Call& call);
  /// Ends it for all ranks: what is not ready everywhere by now ends with an error.
  void Close();

 private:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;
  class NamedCall;
  struct Waiting {
    NamedWork work;
    std::shared_ptr<NamedCall> pending;
    Call call;
    Clock::time_point added;
    Clock::time_point agreed;
  };

  void StartThread();
  void RequireNoFork(const Call& call) const;
  void RequireOpen(const Call& call) const;
  void Serve();
  void WaitUntilDue(Lock& lock);
  void Cycle(Lock& lock);
  void Talk(Lock& lock);
  std::uint64_t Run(const std::vector<coordinator::Ready>& batch);
  void RunPacked(const std::vector<coordinator::Ready>& batch,
                 const std::vector<std::optional<Waiting>>& taken);
  void RunWithout(const coordinator::Signature& what);
  void Tune(std::uint64_t bytes);
  std::vector<std::optional<Waiting>> Take(const std::vector<coordinator::Ready>& batch);
  void End(const std::vector<coordinator::Ready>& batch, const std::vector<std::optional<Waiting>>& taken,
           const std::exception_ptr& error);
  void EndAll(const std::string& why);
  double Now() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  static constexpr Call kCall{"named operations"};
  std::shared_ptr<Session> session_;
  std::shared_ptr<Timeline> timeline_;
  const Clock::time_point start_ = Clock::now();
  const std::uint64_t num_forks_;

  std::mutex mutex_;
  std::condition_variable due_;    ///< the thread has something to do
  std::condition_variable ended_;  ///< an operation, a join, or everything
  coordinator::Participant participant_;
  std::unordered_map<std::string, Waiting> waiting_;
  std::optional<Clock::time_point> first_added_;  ///< since the last cycle
  bool is_urgent_ = false;                        ///< somebody waits, since the last cycle
  bool somebody_waits_ = false;                   ///< for what ends now
  bool joins_ = false;
  std::optional<int> last_joined_;
  bool closes_ = false;
  bool has_thread_ = false;
  std::string over_;  ///< why nothing more is done
  std::exception_ptr over_by_;

  // Of the thread alone.
  std::unique_ptr<coordinator::Coordinator> coordinator_;  ///< on rank 0
  std::unique_ptr<coordinator::Tuner> tuner_;              ///< on rank 0, where it is asked for
  Clock::time_point last_cycle_ = start_;
  std::chrono::microseconds idle_{0};
  std::vector<std::byte> packed_;
};

}  // namespace warren::api
