// Records events and their times, for a listener, as Chrome trace events, or both. Trace events go to one
// file per rank, which Perfetto and chrome://tracing can open. (The format: "Trace Event Format", by the
// Chromium project.)
//
// A file is complete after Finish. The file of a process that died can be opened, too, because viewers do not
// need the end of the list.
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

/// Thread-safe.
class Timeline {
 public:
  using Clock = std::chrono::steady_clock;
  /// The owner of a line (a communicator), and the line's name if it differs.
  struct Line {
    std::string_view owner;
    std::string_view name;
  };
  struct Number {
    std::string_view key;
    std::uint64_t value;
  };

  /// Receives the events, with times of this process's steady clock. Called on the thread that adds the
  /// event.
  using Listener = std::function<void(wire::TracedEvent event)>;

  /// Writes to `path` with the rank inserted: for rank 3, "trace.json" becomes "trace.3.json", and other
  /// names get ".3" appended. An existing file is overwritten. If `path` is empty, no file is written. Throws
  /// Misuse if the file cannot be opened; after a later write error, which is printed, nothing more is
  /// written.
  Timeline(const std::string& path, int rank, const std::string& host, Listener listener = nullptr);
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  /// Adds an event that lasted from `begin` to `end`. Events on one line must be disjoint or nested. After
  /// Finish, events go only to the listener. Does nothing in a forked process.
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
  std::string file_name_;
  CloseOnForkDescriptor file_;
  const std::uint64_t num_forks_ = NumForks();
  std::string unwritten_;
  bool has_events_ = false;
  int rank_;
  Clock::time_point start_ = Clock::now();
  std::int64_t start_ns_;  ///< `start_` on the system clock, modulo kPeriod
  std::unordered_map<std::string, std::int64_t> lines_;
  Clock::time_point last_flush_ = start_;
};

}  // namespace warren
