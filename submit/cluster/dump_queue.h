// Requests the stacks of processes, a few at a time: otherwise, if a thousand processes run on one machine, a
// thousand debuggers would be started there at once.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <utility>

#include "submit/cluster/cluster.h"

namespace warren::submit {

inline constexpr std::size_t kDumpsAtOnce = 4;

class DumpQueue {
 public:
  using Done = std::function<void(std::string text)>;

  /// Calls Cluster::Dump when the request's turn comes. The cluster and this object must live as long as the
  /// io_context runs.
  void Ask(Cluster& cluster, std::size_t index, Done done) {
    waiting_.push_back([this, &cluster, index, done = std::move(done)] {
      cluster.Dump(index, [this, done](std::string text) {
        --running_;
        done(std::move(text));
        StartNext();
      });
    });
    StartNext();
  }

 private:
  void StartNext() {
    while (running_ < kDumpsAtOnce && !waiting_.empty()) {
      const std::function<void()> start = std::move(waiting_.front());
      waiting_.pop_front();
      ++running_;
      start();
    }
  }

  std::deque<std::function<void()>> waiting_;
  std::size_t running_ = 0;
};

}  // namespace warren::submit
