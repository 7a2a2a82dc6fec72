// The checkpoints of one rank, in memory: the newest version's models as bytes. Pure: it neither sends nor
// waits. Replication of local models and the log of results since the last checkpoint will live beside it.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace warren::recovery {

class CheckpointStore {
 public:
  using Serializer = std::function<std::string()>;

  /// How many versions have been ended.
  int version() const { return version_; }

  /// Ends a version with copies of the models; `local` is this rank's own. Each may be absent.
  void Store(std::optional<std::string> global, std::optional<std::string> local);
  /// Ends a version without a copy: `serialize` makes the global model's bytes when somebody asks for them,
  /// once.
  void StoreLazily(Serializer serialize);

  /// The models of the newest version.
  bool has_global() const { return global_.has_value() || serialize_; }
  bool has_local() const { return local_.has_value(); }
  /// Only where there is one. The reference holds until the next version.
  const std::string& Global();
  const std::string& Local() const { return *local_; }

 private:
  int version_ = 0;
  std::optional<std::string> global_;
  std::optional<std::string> local_;
  Serializer serialize_;  // instead of global_ until it is asked for
};

}  // namespace warren::recovery
