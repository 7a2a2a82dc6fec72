// Runs the kubectl commands of one job and reports how each ends.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "submit/options/options.h"
#include "submit/process/children.h"

namespace warren::submit {

class Kubectl {
 public:
  /// `printed`: standard output if the command succeeded, else standard error followed by standard output.
  using Done = std::function<void(const std::string& printed, const ExitStatus& status)>;

  /// Throws std::runtime_error if kubectl is not found. Calls `on_end` whenever a command has ended, before
  /// the command's `done`. Reads `options.job_name` for each command.
  Kubectl(boost::asio::io_context& io, Children& children, const Options& options,
          std::function<void()> on_end);

  /// The whole command line, with the user's own arguments and namespace.
  std::vector<std::string> Words(const std::vector<std::string>& words) const;
  /// The command that creates the objects described on its standard input, by server-side apply. `manager`
  /// owns every field that is created, so an existing object of another owner is a conflict and is not
  /// changed. The server records the owners, so no annotation contains a copy of a Secret.
  std::vector<std::string> ApplyWords(const std::string& manager) const;
  /// The command that gets the pods and Jobs of start number `start` of the job.
  std::vector<std::string> GetWords(int start) const;
  /// The command that shows a person the pods and Jobs of the job.
  std::vector<std::string> ShowWords() const;
  /// The command that deletes all objects of the job.
  std::vector<std::string> DeleteWords() const;
  /// A shell command that deletes all objects of the job after dmlc-submit has died.
  std::string CleanupCommand() const;

  /// Runs a command, and kills it after `patience`. Returns -1 if it cannot be started; `done` is called in
  /// this case, too.
  pid_t Run(const std::vector<std::string>& words, const std::string& input, std::chrono::seconds patience,
            const Done& done);
  bool busy() const { return !running_.empty(); }

 private:
  boost::asio::io_context& io_;
  Children& children_;
  const Options& options_;
  std::function<void()> on_end_;
  std::string path_;
  std::set<pid_t> running_;
};

}  // namespace warren::submit
