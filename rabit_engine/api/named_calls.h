// Operations that each rank gives by name, in any order: a thread, or whoever waits for one, takes part in
// the cycles in which the ranks agree on what is ready everywhere (coordinator/), packs what is small, and
// runs it, in the same order on all ranks. This has a communicator of its own, so that nothing else has to
// wait.
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
#include <thread>
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
  /// Ends it for all ranks: what is not ready everywhere by now ends with an error. Throws what ended it
  /// instead while this waited for the others; not what had ended it before.
  void Close();

 private:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;
  class NamedCall;
  struct Waiting {
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
                 const std::vector<std::optional<Waiting>>& taken);
  void RunWithout(const coordinator::Signature& what);
  void Tune(std::uint64_t bytes);
  std::vector<std::optional<Waiting>> Take(const std::vector<coordinator::Ready>& batch);
  void End(const std::vector<coordinator::Ready>& batch, const std::vector<std::optional<Waiting>>& taken,
           const std::exception_ptr& error);
  void End(Lock& lock, const std::string& why, const std::exception_ptr& error);
  double Now() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  static constexpr Call kCall{"named operations"};
  std::shared_ptr<Session> session_;
  std::shared_ptr<Timeline> timeline_;
  const Clock::time_point start_ = Clock::now();
  const std::uint64_t num_forks_;

  std::mutex mutex_;
  std::condition_variable due_;      ///< for the thread: there may be something to do
  std::condition_variable changed_;  ///< for all others: a cycle is over, or the thread
  coordinator::Participant participant_;
  std::unordered_map<std::string, Waiting> waiting_;
  std::optional<Clock::time_point> first_added_;  ///< since the last cycle
  bool is_urgent_ = false;                        ///< somebody waits, since the last cycle
  bool is_running_ = false;                       ///< somebody is in a cycle
  bool runs_in_thread_ = false;                   ///< which is the thread
  int num_helpers_ = 0;                           ///< who wait, and run cycles
  Clock::time_point last_cycle_ = start_;         ///< its end
  std::chrono::microseconds idle_{100};           ///< until the next, when there is no reason for one
  bool joins_ = false;
  std::optional<int> last_joined_;
  bool closes_ = false;
  bool has_thread_ = false;
  std::mutex join_mutex_;
  std::thread thread_;
  std::string over_;          ///< why nothing more is done
  std::exception_ptr error_;  ///< the same, where it was an error

  // Of whoever is in a cycle.
  std::unique_ptr<coordinator::Coordinator> coordinator_;  ///< on rank 0
  std::unique_ptr<coordinator::Tuner> tuner_;              ///< on rank 0, where it is asked for
  std::vector<std::byte> packed_;
};

}  // namespace warren::api
