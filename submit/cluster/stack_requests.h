// Who wants to know where a process elsewhere is in its program (Cluster::Dump), and what its agent has told
// of that so far: "stack" with a line each, and "stacks" behind the last (scripts/stacks.sh).
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

/// How long the lines may take: those of several processes, and of tools that give up after 10 s each.
inline constexpr std::chrono::seconds kStacksPatience{30};

class StackRequests {
 public:
  using Done = std::function<void(std::string text)>;

  explicit StackRequests(boost::asio::io_context& io) : io_(io) {}

  /// `done` is called once, from the io_context. True when the agent is to be asked: nobody has yet.
  bool Ask(std::size_t index, Done done);
  /// True when the message belongs to a request, or did.
  bool Take(const AgentMessage& message);
  /// Nothing more will come.
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
