// The kubectl commands of one job, and what becomes of each.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "submit/options.h"
#include "submit/process/children.h"

namespace warren::submit {

class Kubectl {
 public:
  /// `printed` is what it wrote: its output when it succeeded, else its complaints first.
  using Done = std::function<void(const std::string& printed, const ExitStatus& status)>;

  /// Throws std::runtime_error when there is no kubectl. `on_end` is called whenever a command has ended,
  /// before its `done`. `options.job_name` is read with each command.
  Kubectl(boost::asio::io_context& io, Children& children, const Options& options,
          std::function<void()> on_end);

  /// The whole command line, with the user's own arguments and namespace.
  std::vector<std::string> Words(const std::vector<std::string>& words) const;
  /// Makes what is in its standard input, and nothing of anybody else: `manager` is the owner of every field
  /// that is made, so an object that is there already, by another owner, is a conflict and stays as it is.
  /// The server keeps the record of that, and no copy of a Secret in an annotation.
  std::vector<std::string> ApplyWords(const std::string& manager) const;
  /// The pods and Jobs of a start of the job.
  std::vector<std::string> GetWords(int start) const;
  /// All objects of the job.
  std::vector<std::string> DeleteWords() const;
  /// A line for a shell that deletes all of them when dmlc-submit has died.
  std::string CleanupCommand() const;

  /// Runs a command, which is killed after `patience`; -1 when it cannot be started, which `done` is told
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
