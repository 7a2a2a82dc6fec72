#include "submit/process/sampler.h"

#include <unistd.h>

#include <chrono>
#include <utility>

namespace warren::submit {
namespace {

/// The number of files read in one portion. A portion takes about a millisecond and is followed by a pause.
constexpr std::size_t kReadAtOnce = 100;
constexpr std::chrono::milliseconds kPause{10};

}  // namespace

ProcessSampler::ProcessSampler(boost::asio::io_context& io)
    : timer_(io),
      units_{static_cast<double>(sysconf(_SC_CLK_TCK)), static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE))} {}

void ProcessSampler::Watch(pid_t pid, OnSample on_sample) {
  watched_[pid] = std::move(on_sample);
  if (!std::exchange(at_work_, true)) WaitFor(kSampleInterval, &ProcessSampler::BeginPass);
}

void ProcessSampler::Forget(pid_t pid) {
  watched_.erase(pid);
}

void ProcessSampler::WaitFor(std::chrono::steady_clock::duration pause, void (ProcessSampler::*next)()) {
  timer_.expires_after(pause);
  timer_.async_wait([this, next](const boost::system::error_code& error) {
    if (error) return;
    if (watched_.empty()) {
      at_work_ = false;
    } else {
      (this->*next)();
    }
  });
}

void ProcessSampler::BeginPass() {
  unread_ = AllProcesses();
  read_.clear();
  ReadSome();
}

void ProcessSampler::ReadSome() {
  for (std::size_t i = 0; i < kReadAtOnce && !unread_.empty(); ++i, unread_.pop_back()) {
    if (const auto stat = ReadProcessStat(unread_.back())) read_.push_back(*stat);
  }
  if (!unread_.empty()) return WaitFor(kPause, &ProcessSampler::ReadSome);
  EndPass();
}

void ProcessSampler::EndPass() {
  std::vector<pid_t> pids;
  pids.reserve(watched_.size());
  for (const auto& [pid, on_sample] : watched_) pids.push_back(pid);
  for (const auto& [pid, sample] : SamplesOf(pids, read_, units_)) {
    const auto found = watched_.find(pid);
    if (found == watched_.end()) continue;  // forgotten during an earlier callback
    const OnSample on_sample = found->second;
    on_sample(sample);
  }
  WaitFor(kSampleInterval, &ProcessSampler::BeginPass);
}

}  // namespace warren::submit
