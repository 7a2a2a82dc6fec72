// Looks at processes of this machine every kSampleInterval. One pass over /proc serves all of them, some
// processes at a time, so that whatever else the io_context does never waits long for it.
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

  /// `on_sample` is called from the io_context until Forget, for the first time after an interval.
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
  bool at_work_ = false;       ///< waiting for a pass, or in one
  std::vector<pid_t> unread_;  ///< of the pass
  std::vector<ProcessStat> read_;
};

}  // namespace warren::submit
