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

  /// Throws std::runtime_error if there is no kubectl. Calls `on_end` whenever a command has ended, before
  /// its `done`. Reads `options.job_name` for each command.
  Kubectl(boost::asio::io_context& io, Children& children, const Options& options,
          std::function<void()> on_end);

  /// The whole command line, with the user's own arguments and namespace.
  std::vector<std::string> Words(const std::vector<std::string>& words) const;
  /// The command that creates the objects in its standard input and changes nothing of other owners:
  /// `manager` owns every field that is created, so an existing object of another owner is a conflict and
  /// stays as it is. The record of this is kept by the server, with no copy of a Secret in an annotation.
  std::vector<std::string> ApplyWords(const std::string& manager) const;
  /// The command that gets the pods and Jobs of start number `start` of the job.
  std::vector<std::string> GetWords(int start) const;
  /// The command that deletes all objects of the job.
  std::vector<std::string> DeleteWords() const;
  /// A shell line that deletes all of them after dmlc-submit has died.
  std::string CleanupCommand() const;

  /// Runs a command, and kills it after `patience`. Returns -1 if it cannot be started; `done` is called then
  /// too.
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
