// What happened when, for whoever listens, or as Chrome's trace events: a file for each rank, which Perfetto
// and chrome://tracing open. (The format: "Trace Event Format", by the Chromium project.)
//
// A file is complete after Finish; what a process that died had written can be opened, too, since readers do
// without the end of the list.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "rabit_engine/base/descriptor.h"
#include "wire/report.h"

namespace warren {

/// Thread safe.
class Timeline {
 public:
  using Clock = std::chrono::steady_clock;
  /// Whose it is (a communicator), and what it is called, when it differs.
  struct Line {
    std::string_view owner;
    std::string_view name;
  };
  struct Number {
    std::string_view key;
    std::uint64_t value;
  };

  /// Somebody else who wants the events, by this process's steady clock. Called by whichever thread adds one.
  using Listener = std::function<void(wire::TracedEvent event)>;

  /// "trace.json" becomes "trace.3.json" for rank 3, and other names get ".3" at their end; empty: no file is
  /// written. Throws Misuse when it cannot be.
  Timeline(const std::string& path, int rank, const std::string& host, Listener listener = nullptr);
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  /// Something that took from `begin` to `end`. What is on one line does not overlap, but for what lies
  /// within something else. Nothing after Finish, and in a process that was forked.
  void Add(const Line& line, std::string_view what, Clock::time_point begin, Clock::time_point end,
           std::initializer_list<Number> numbers = {});
  void Finish();

 private:
  void Tell(const Line& line, std::string_view what, Clock::time_point begin, Clock::time_point end,
            std::initializer_list<Number> numbers) const;
  std::int64_t Nanoseconds(Clock::time_point time) const;
  void Write(const std::string& event);
  void Flush();

  const Listener listener_;
  const bool writes_file_;
  std::mutex mutex_;
  CloseOnForkDescriptor file_;
  const std::uint64_t num_forks_ = NumForks();
  std::string unwritten_;
  bool has_events_ = false;
  int rank_;
  Clock::time_point start_ = Clock::now();
  std::int64_t start_ns_;  ///< the same moment in a time that all ranks have
  std::unordered_map<std::string, std::int64_t> lines_;
  Clock::time_point last_flush_ = start_;
};

}  // namespace warren
