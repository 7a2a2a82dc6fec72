#include "submit/cluster/stack_requests.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <utility>

namespace warren::submit {

bool StackRequests::Ask(std::size_t index, Done done) {
  std::unique_ptr<Request>& request = requests_[index];
  const bool is_first = !request;
  if (is_first) {
    request = std::make_unique<Request>(Request{{}, {}, boost::asio::steady_timer(io_, kStacksPatience)});
    request->patience.async_wait([this, index](const boost::system::error_code& error) {
      if (!error) End(index, fmt::format("no further output within {} s", kStacksPatience.count()));
    });
  }
  request->askers.push_back(std::move(done));
  return is_first;
}

bool StackRequests::Take(const AgentMessage& message) {
  if (message.kind != "stack" && message.kind != "stacks") return false;
  const auto found = requests_.find(message.index);
  if (found == requests_.end()) return true;  // the request has already been answered
  if (message.kind == "stacks") {
    End(message.index, "");
  } else {
    const std::size_t space = message.text.find(' ');  // between the attempt and a line of the stack
    if (space != std::string::npos) found->second->text += message.text.substr(space + 1);
    found->second->text += '\n';
  }
  return true;
}

void StackRequests::End(std::size_t index, const std::string& why) {
  const auto found = requests_.find(index);
  if (found == requests_.end()) return;
  const std::shared_ptr<Request> request = std::move(found->second);
  requests_.erase(found);
  request->patience.cancel();
  if (!why.empty()) request->text += fmt::format("({})\n", why);
  boost::asio::post(io_, [request] {
    for (const Done& done : request->askers) done(request->text);
  });
}

}  // namespace warren::submit
