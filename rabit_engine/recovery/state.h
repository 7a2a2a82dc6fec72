// The data that one rank keeps for recovery: the current version, its models, and the results of the calls
// since it began. Does no I/O. recoverable_communicator.h connects this state to the other ranks; tests
// simulate several ranks with it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "rabit_engine/recovery/buffer.h"
#include "rabit_engine/recovery/call_log.h"
#include "rabit_engine/recovery/plan.h"

namespace warren::recovery {

/// The models of one version.
struct Models {
  using Serializer = std::function<std::string()>;

  std::optional<std::string> global;
  Serializer serialize;  ///< produces `global` when it is needed, and is then emptied
  bool is_gone = false;  ///< whether a lazy model was not serialized before the program was free to change it
  std::map<int, std::string> locals;  ///< by rank: this rank's own, and copies of other ranks' models

  bool has_global() const { return global.has_value() || serialize || is_gone; }
  /// Returns the global model, serialized first if necessary. Requires a global model that is not gone.
  const std::string& Global();
  /// `is_wanted`: whether some rank needs the global model. If so, a lazy one is serialized, since the report
  /// contains its size.
  ModelsReport Report(bool is_wanted);
};

/// Not thread-safe.
class RecoveryState {
 public:
  RecoveryState(int rank, int world_size, const Replicas& replicas, bool keeps_before);

  /// Whether this process has not yet met the other ranks of the job.
  bool fresh() const { return fresh_; }
  void Met() { fresh_ = false; }

  /// Whether LoadCheckPoint has been called. From then on results are kept.
  bool loaded() const { return loaded_; }
  void Load() { loaded_ = true; }
  bool recording() const { return loaded_ || keeps_before_; }
  CallLog& calls() { return loaded_ ? calls_ : before_; }
  BufferStock& stock() { return stock_; }

  int version() const { return version_; }
  Models& models() { return models_; }
  /// Whether CheckPoint is ending a version. next() has the models of the next version; copies of other
  /// ranks' local models are added to it.
  bool ending() const { return ending_; }
  Models& next() { return next_; }
  void BeginEnding(Models next);
  void End();

  /// `with_global`: whether some rank needs the global model.
  Report MakeReport(bool with_global);
  /// Moves this rank to the plan's version. Called before any transfer.
  void Follow(const Plan& plan);
  /// Returns the bytes that this rank sends in a transfer.
  std::span<const std::byte> Part(const Transfer& transfer);
  /// Stores data that this rank has received.
  void Take(const Transfer& transfer, Buffer bytes);

 private:
  bool keeps_before_;
  bool fresh_ = true;
  bool loaded_ = false;
  bool ending_ = false;
  int version_ = 0;
  Models models_;
  Models next_;
  CallLog before_;
  CallLog calls_;
  BufferStock stock_;
};

}  // namespace warren::recovery
