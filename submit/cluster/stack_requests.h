// Keeps the requests for the stacks of processes on other hosts (Cluster::Dump), and collects the lines that
// the processes' wrapper scripts send: a "stack" message for each line, and "stacks" after the last
// (scripts/stacks.sh).
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "submit/cluster/agent_messages.h"

namespace warren::submit {

/// Time limit for receiving all lines. The script takes up to 22 s (stacks_limit in scripts/stacks.sh).
inline constexpr std::chrono::seconds kStacksPatience{30};

class StackRequests {
 public:
  using Done = std::function<void(std::string text)>;

  explicit StackRequests(boost::asio::io_context& io) : io_(io) {}

  /// Adds a request; `done` is called once, from the io_context. Returns true if the wrapper script must be
  /// sent a request, since no earlier one for this process is pending.
  bool Ask(std::size_t index, Done done);
  /// Processes a "stack" or "stacks" message; returns false for any other message.
  bool Take(const AgentMessage& message);
  /// Answers the pending requests for this process, if any, with the lines received so far, followed by `why`
  /// in parentheses unless it is empty.
  void End(std::size_t index, const std::string& why);

 private:
  struct Request {
    std::string text;
    std::vector<Done> askers;
    boost::asio::steady_timer patience;
  };

  boost::asio::io_context& io_;
  std::map<std::size_t, std::unique_ptr<Request>> requests_;
};

}  // namespace warren::submit
