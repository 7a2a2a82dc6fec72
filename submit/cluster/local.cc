#include "submit/cluster/local.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <utility>

#include "submit/cluster/script.h"
#include "submit/cluster/stack_requests.h"
#include "submit/process/command.h"
#include "submit/process/environment.h"

namespace warren::submit {

Started LocalCluster::Start(std::size_t index, const PlannedProcess& process, int attempt) {
  const auto whole = InheritedWith(EnvironmentOfAttempt(process, attempt), process.unset);
  const auto pid = std::make_shared<pid_t>(-1);
  *pid = children_.Start(
      {process.file, process.argv, whole, false, process.cores},
      {[this, index](Stream stream, std::string_view bytes) { events_.output(index, stream, bytes); },
       [this, index, pid](const ExitStatus& status) {
         const auto found = running_.find(index);
         if (found != running_.end() && found->second == *pid) running_.erase(found);
         events_.exited(index, status);
       },
       [this, index](const ProcessSample& sample) { events_.sampled(index, sample); }});
  running_[index] = *pid;
  return {*pid, children_.host()};
}

void LocalCluster::Stop() {
  children_.Stop(Running());
}

void LocalCluster::Kill() {
  children_.Kill(Running());
}

std::set<pid_t> LocalCluster::Running() const {
  std::set<pid_t> pids;
  for (const auto& [index, pid] : running_) pids.insert(pid);
  return pids;
}

/// Reads the stacks with StacksCommand, which is killed after kStacksPatience.
void LocalCluster::Dump(std::size_t index, std::function<void(std::string text)> done) {
  const auto say = [this, done](std::string text) {
    boost::asio::post(io_, [done, text = std::move(text)] { done(text); });
  };
  const auto found = running_.find(index);
  if (found == running_.end()) return say("(it is not running)\n");
  const std::vector<std::string> words = StacksCommand(found->second);
  const auto text = std::make_shared<std::string>();
  const auto patience = std::make_shared<boost::asio::steady_timer>(io_, kStacksPatience);
  try {
    const pid_t pid = children_.Start(
        {FindCommand(words.front(), SearchPath()).file, words, InheritedWith({}, {})},
        {[text](Stream stream, std::string_view bytes) {
           if (stream == Stream::kOut) *text += bytes;
         },
         [text, patience, done](const ExitStatus& status) {
           patience->cancel();
           if (!status.ok())
             *text += fmt::format("(the command that reads the stacks {})\n", status.Describe());
           done(*text);
         }});
    patience->async_wait([this, pid, patience](const boost::system::error_code& error) {
      if (!error) children_.Kill({pid});
    });
  } catch (const std::runtime_error& error) {
    say(fmt::format("({})\n", error.what()));
  }
}

ClusterEntry LocalEntry() {
  ClusterEntry entry;
  entry.name = "local";
  entry.where = "this machine";
  entry.make = [](ClusterContext context) -> std::unique_ptr<Cluster> {
    return std::make_unique<LocalCluster>(context.io, context.children, std::move(context.events));
  };
  entry.show = [](const Options&, const std::vector<PlannedProcess>& plan, const std::string&) {
    return ShowPlan(plan);
  };
  entry.host = [](const Options&) { return JobHost{kLoopback}; };
  entry.known_hosts = [](const Options&) { return std::vector<std::string>{kLoopback}; };
  entry.runs_here = true;
  entry.may_lose_workers = true;
  entry.shared_options = {"--bind"};
  entry.core_sharing = CoreSharing::kHere;
  return entry;
}

}  // namespace warren::submit
