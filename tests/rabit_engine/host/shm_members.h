// Members of one shared segment as threads of one process, which share one mapping so that the thread
// sanitizer sees their races.
#pragma once

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <vector>

#include "rabit_engine/host/host_segment.h"
#include "tests/rabit_engine/base/on_threads.h"

namespace warren {

class Members {
 public:
  explicit Members(int size, const HostCores& cores = kSmallCaches) {
    const std::size_t bytes = HostSegment::Bytes(static_cast<std::size_t>(size), cores);
    const auto descriptor =
        std::make_shared<const CloseOnForkDescriptor>(memfd_create("warren-test", MFD_CLOEXEC));
    if (ftruncate(descriptor->fd(), static_cast<off_t>(bytes)) != 0) std::abort();
    const HostSegment::Memory memory = HostSegment::Map(descriptor, 0, bytes);
    for (int i = 0; i < size; ++i) {
      lifelines_.emplace_back(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
      doorbells_.emplace_back(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    }
    for (int i = 0; i < size; ++i) {
      std::vector<HostSegment::Member> members;
      members.reserve(static_cast<std::size_t>(size));
      for (int j = 0; j < size; ++j) {
        members.push_back({RankOf(j), std::make_shared<const CloseOnForkDescriptor>(dup(lifelines_[j].fd())),
                           std::make_shared<Doorbell>(CloseOnForkDescriptor(dup(doorbells_[j].fd())))});
      }
      segments_.push_back(std::make_unique<HostSegment>(memory, std::move(members), i, cores));
    }
  }

  /// Cache sizes that make each stage as small as possible, so that tests reuse it often.
  static constexpr HostCores kSmallCaches{.cache_bytes = kLeastStageBytes / 4};

  /// The world rank of a member, which differs from its local index.
  static int RankOf(int local) { return 2 * local + 1; }
  int size() const { return static_cast<int>(segments_.size()); }
  HostSegment& operator[](int local) { return *segments_[local]; }

  /// Signals the end of a member's process, as the kernel would.
  void End(int local) { eventfd_write(lifelines_[local].fd(), 1); }
  /// Makes a member leave in an orderly way.
  void Leave(int local) { segments_[local].reset(); }

  /// Runs `function` for all members, each in its own thread; rethrows the failure of the lowest member that
  /// failed.
  void OnAll(const std::function<void(int local)>& function) { OnThreads(size(), function); }

 private:
  std::vector<CloseOnForkDescriptor> lifelines_;
  std::vector<CloseOnForkDescriptor> doorbells_;
  std::vector<std::unique_ptr<HostSegment>> segments_;
};

}  // namespace warren
