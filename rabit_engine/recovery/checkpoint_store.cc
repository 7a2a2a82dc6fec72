// Keeping the newest version.
#include "rabit_engine/recovery/checkpoint_store.h"

#include <utility>

namespace warren::recovery {

void CheckpointStore::Store(std::optional<std::string> global, std::optional<std::string> local) {
  global_ = std::move(global);
  local_ = std::move(local);
  serialize_ = nullptr;
  ++version_;
}

void CheckpointStore::StoreLazily(Serializer serialize) {
  global_.reset();
  local_.reset();
  serialize_ = std::move(serialize);
  ++version_;
}

const std::string& CheckpointStore::Global() {
  if (serialize_) {
    global_ = serialize_();
    serialize_ = nullptr;
  }
  return *global_;
}

}  // namespace warren::recovery
