// dmlc-submit with an additional cluster: the example of docs/explanation/extending.md. toy_cluster_test.py
// runs jobs on it.
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "submit/cluster/clusters.h"
#include "submit/job/program.h"
#include "submit/process/environment.h"

namespace warren::submit {
namespace {

/// The words that start a process: nice takes priority from it.
std::vector<std::string> NiceWords(const Options& options, const PlannedProcess& process) {
  const auto given = options.texts.find("--nice-by");
  const std::string by = given == options.texts.end() ? "5" : given->second.back();
  std::vector<std::string> words = {"nice", "-n", by, process.file};
  words.insert(words.end(), process.argv.begin() + 1, process.argv.end());
  return words;
}

/// Runs the processes of a job on this machine, at a low priority.
class NiceCluster : public Cluster {
 public:
  explicit NiceCluster(ClusterContext context) : context_(std::move(context)) {}

  Started Start(std::size_t index, const PlannedProcess& process, int attempt) override {
    const auto pid = std::make_shared<pid_t>(-1);
    *pid =
        context_.children.Start({FindCommand("nice", SearchPath()).file, NiceWords(context_.options, process),
                                 InheritedWith(EnvironmentOfAttempt(process, attempt), process.unset)},
                                {[this, index](Stream stream, std::string_view bytes) {
                                   context_.events.output(index, stream, bytes);
                                 },
                                 [this, index, pid](const ExitStatus& status) {
                                   running_.erase(*pid);
                                   context_.events.exited(index, status);
                                 }});
    running_.insert(*pid);
    return {*pid, context_.children.host()};
  }
  void Stop() override { context_.children.Stop(running_); }
  void Kill() override { context_.children.Kill(running_); }

 private:
  ClusterContext context_;
  std::set<pid_t> running_;
};

ClusterEntry NiceEntry() {
  ClusterEntry entry;
  entry.name = "nice";
  entry.where = "this machine, behind everybody else's processes";
  entry.make = [](ClusterContext context) { return std::make_unique<NiceCluster>(std::move(context)); };
  entry.show = [](const Options& options, const std::vector<PlannedProcess>& plan, const std::string&) {
    std::string text;
    for (const PlannedProcess& process : plan) text += ShellCommand(NiceWords(options, process)) + '\n';
    return text;
  };
  entry.host = [](const Options&) { return JobHost{kLoopback}; };
  entry.own_options = {{"--nice-by", "N", "5", "How much priority is taken from each process."}};
  return entry;
}

const ClusterRegistration nice(NiceEntry());

}  // namespace
}  // namespace warren::submit

int main(int argc, char** argv) {
  return warren::submit::RunProgram(argc, argv);
}
