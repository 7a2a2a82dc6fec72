// The communicator that programs use: it survives the loss of a rank. While no rank is lost, it passes calls
// on to the communicator that it wraps and keeps the data that a restarted rank would need (state.h). If a
// peer is lost, this communicator discards the wrapped one, rejoins the job through the tracker, meets the
// other ranks (plan.h), and continues with the call that failed. docs/explanation/recovery.md explains
// recovery as a whole.
//
// Results are kept, and a loss is survived, only in jobs that ranks joined through a tracker, and only after
// the program has called LoadCheckPoint (with rabit_bootstrap_cache=1, from the beginning). Otherwise a loss
// is an error, as in the wrapped communicator. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rabit_engine/base/error.h"
#include "rabit_engine/base/settings.h"
#include "rabit_engine/call/communicator.h"
#include "rabit_engine/engine/native_communicator.h"
#include "rabit_engine/recovery/state.h"

namespace warren::recovery {

/// A collective on memory that the host cannot access, with functions that run it and copy its result to the
/// host and back.
struct ExternalCollective {
  const char* name;
  std::size_t bytes;  ///< size of the result, which is the same on all ranks
  /// Runs the collective, using `links`, and returns when the result is complete. Does not change the input.
  /// May be called again after it has thrown LostPeer or TimedOut.
  std::function<void(Communicator& links)> run;
  /// Copies the result of `run` to `to`, in host memory.
  std::function<void(void* to)> save;
  /// Stores a kept result where the program expects it. Called instead of `run` and `save`.
  std::function<void(const void* from)> restore;
};

class RecoverableCommunicator final : public Communicator {
 public:
  /// Joins the job. A restarted process receives the data it needs to catch up.
  static std::unique_ptr<RecoverableCommunicator> Join(const Settings& settings);
  /// For jobs without recovery: checkpoints are kept in this process only.
  explicit RecoverableCommunicator(std::unique_ptr<Communicator> communicator);
  ~RecoverableCommunicator() override;

  int rank() const override { return rank_; }
  int world_size() const override { return world_size_; }
  bool is_distributed() const override { return is_distributed_; }
  std::string host() const override { return host_; }
  int local_rank() const override { return inner_->local_rank(); }
  int host_of(int rank) const override { return inner_->host_of(rank); }
  int rank_in_job(int rank) const override { return inner_->rank_in_job(rank); }
  std::string name() const override { return inner_->name(); }

  /// Whether results are kept, so that the loss of a rank is not an error.
  bool recovers() const { return native_ != nullptr && state_->recording(); }
  /// Whether the result of the next call is already known; that call then uses neither its input nor other
  /// ranks.
  bool NextIsReplayed();

  /// While this communicator recovers(), it keeps the results of allreduces, broadcasts, allgathers and
  /// barriers. A kept result must serve all ranks, so a reduce and a reduce-scatter reduce the whole vector
  /// on all ranks. Collectives of other kinds are refused, because their results are not kept. Communicators
  /// that were split off do not recover; their calls fail when any rank of the job is lost.
  void Run(const Operation& operation) override;
  std::unique_ptr<Communicator> Split(int color, int key) override;
  std::unique_ptr<Communicator> Group(std::span<const int> ranks, const std::string& name,
                                      OobAllgather& members) override;
  std::unique_ptr<TaggedMessages> MakeMailbox() override;
  bool has_timeouts() const override { return inner_->has_timeouts(); }
  void SetCallTimeout(std::chrono::milliseconds timeout) override;
  void LookForLosses() override {
    if (inner_) inner_->LookForLosses();  // inner_ is null if the ranks could not be linked again
  }
  void GiveUp() noexcept override;
  void TrackerPrint(const std::string& text) override;
  void Finalize() override;

  /// Runs an external collective, with the same size on all ranks. Requires recovers(). A collective call.
  void RunExternal(const ExternalCollective& call);
  /// The number of times the ranks have been linked. If this number has changed, everything that was created
  /// over the links is invalid.
  std::uint64_t linkings() const { return linkings_; }

  /// The number of checkpoints in the job so far.
  int version() const { return state_->version(); }
  /// Returns the models of the latest version; in a restarted process, of the job's latest version. They are
  /// valid until the next version begins. From this call on, a job with recovery survives the loss of a rank.
  Models& LoadCheckPoint();
  /// Ends a version. A collective call. While this communicator recovers(), returns when all ranks have
  /// called it, and throws Misuse if some ranks pass a local model and others do not.
  void CheckPoint(std::optional<std::string> global, std::optional<std::string> local);
  /// Like CheckPoint, without a copy: `serialize` is called only when a restarted rank or a later
  /// LoadCheckPoint of this rank needs the model.
  void LazyCheckPoint(Models::Serializer serialize);

 private:
  void Record(const Operation& operation);
  void RequireValid(const Operation& operation) const;
  void RequireNoRecovery(std::string_view call) const;
  void Mock(std::string_view call);
  const Buffer* Kept(std::string_view name, std::size_t bytes);
  bool Replays(std::string_view name, void* buffer, std::size_t bytes);
  void EndVersion(Models next);
  void Replicate();
  explicit RecoverableCommunicator(const Settings& settings);
  void JoinAs(std::optional<int> rank);
  void Meet();
  void Follow(const Plan& plan);
  void JoinUntilAllAreThere(std::optional<int> rank, const std::string& why);
  void Rejoin(const EngineError& loss);

  Settings settings_;
  Replicas replicas_;
  std::unique_ptr<Communicator> inner_;
  NativeCommunicator* native_ = nullptr;  ///< inner_ if the ranks can be linked again, else nullptr
  int rank_ = -1;
  int world_size_ = 1;
  bool is_distributed_ = false;
  std::string host_;
  std::optional<RecoveryState> state_;
  std::uint64_t linkings_ = 0;
  std::chrono::milliseconds call_timeout_{0};
  bool others_have_loaded_ = false;  ///< whether some rank had called LoadCheckPoint when the ranks last met
};

}  // namespace warren::recovery
