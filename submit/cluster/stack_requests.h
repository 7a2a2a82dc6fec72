// Requests for the stacks of a process on another host (Cluster::Dump), and the lines received so far from
// the process's agent: a "stack" message for each line, and "stacks" after the last (scripts/stacks.sh).
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

/// Time limit for all lines: there may be several processes, and the tools give up after 10 s each.
inline constexpr std::chrono::seconds kStacksPatience{30};

class StackRequests {
 public:
  using Done = std::function<void(std::string text)>;

  explicit StackRequests(boost::asio::io_context& io) : io_(io) {}

  /// Calls `done` once, from the io_context. Returns true if the agent must be asked, since no earlier
  /// request for this process is pending.
  bool Ask(std::size_t index, Done done);
  /// Takes a "stack" or "stacks" message; returns false for any other message.
  bool Take(const AgentMessage& message);
  /// Answers the requests with the lines received so far, followed by `why` in parentheses unless it is
  /// empty.
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
