// Workers that fail together, and with which of them it began.
//
// Where one worker of XGBoost 2.1 or later fails, the others fail, too, and sooner than it is gone, perhaps.
// So failures are gathered for a while, and then judged in order: first the one that was gone first for the
// tracker, by leaving the job (as when Python leaves the communicator's context by an exception; the others
// may fail sooner than it has ended) or without a word; or else the one of whose error the tracker heard
// first.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "submit/process/process.h"

namespace warren::submit {

/// More than the 40 ms for which the kernel may hold back the last words of a process that has ended.
inline constexpr std::chrono::milliseconds kSettleTime{500};

struct Failure {
  std::size_t index = 0;  ///< in the plan
  ExitStatus status;
  bool left = false;                   ///< the job at the tracker, before it failed
  std::optional<int> gone_after = {};  ///< so many others were gone for the tracker before it
  std::string story = {};              ///< what the tracker says of it; empty: it exited with a failure
};

/// What was gathered.
struct FailureCase {
  std::vector<Failure> failures;
  std::optional<std::size_t> first;  ///< of which the tracker heard first
  std::string story;                 ///< what it heard

  /// Puts that with which it began first. The order of the others stays where nothing is known of them.
  void PutInOrder();
};

class Judgement {
 public:
  /// `is_running` tells of a process of the plan whether it has not ended; `judge` gets what was gathered.
  Judgement(boost::asio::io_context& io, std::function<bool(std::size_t)> is_running,
            std::function<void(FailureCase)> judge);

  /// Adds a failure, to be judged soon.
  void Add(Failure failure);
  /// The tracker has heard of this one's error first; to be judged soon.
  void Accuse(std::optional<std::size_t> index, const std::string& story);
  void JudgeNow();
  /// Forgets what was gathered.
  void Clear();
  /// Something was gathered that is to be judged.
  bool due() const { return due_; }

 private:
  void JudgeSoon();
  void JudgeAfterAWhile(std::chrono::milliseconds patience);

  boost::asio::steady_timer timer_;
  std::function<bool(std::size_t)> is_running_;
  std::function<void(FailureCase)> judge_;
  FailureCase case_;
  bool due_ = false;
};

}  // namespace warren::submit
