// Samples processes of this machine about every kSampleInterval. One pass over /proc serves all of them; it
// runs in small portions, so that it never blocks the io_context for long.
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <vector>

#include "submit/process/process_stat.h"

namespace warren::submit {

class ProcessSampler {
 public:
  using OnSample = std::function<void(const ProcessSample& sample)>;

  explicit ProcessSampler(boost::asio::io_context& io);

  /// Calls `on_sample` from the io_context after each pass over /proc, until Forget.
  void Watch(pid_t pid, OnSample on_sample);
  void Forget(pid_t pid);

 private:
  void WaitFor(std::chrono::steady_clock::duration pause, void (ProcessSampler::*next)());
  void BeginPass();
  void ReadSome();
  void EndPass();

  boost::asio::steady_timer timer_;
  ProcessUnits units_;
  std::map<pid_t, OnSample> watched_;
  bool at_work_ = false;       ///< whether a pass is running or scheduled
  std::vector<pid_t> unread_;  ///< pids that the current pass has not read yet
  std::vector<ProcessStat> read_;
};

}  // namespace warren::submit
