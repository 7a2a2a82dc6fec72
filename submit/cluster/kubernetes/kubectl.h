// Makes the kubectl commands of one job, and runs those that end by themselves, i.e. all except the ones that
// follow logs.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "submit/options/options.h"
#include "submit/process/children.h"

namespace warren::submit {

class Kubectl {
 public:
  /// `printed`: standard output if the command succeeded; the reason if it could not be started; otherwise
  /// standard error followed by standard output.
  using Done = std::function<void(const std::string& printed, const ExitStatus& status)>;

  /// Calls `on_end` whenever a command of Run has ended, before the command's `done`. `options` must outlive
  /// this object. Throws std::runtime_error if kubectl is not found.
  Kubectl(boost::asio::io_context& io, Children& children, const Options& options,
          std::function<void()> on_end);

  /// The whole command line: kubectl, the user's own options (--kube-args, --kube-namespace), and `words`.
  std::vector<std::string> Words(const std::vector<std::string>& words) const;
  /// The command that creates the objects described on its standard input, by server-side apply. `manager`
  /// becomes the owner of every field that is created, so an existing object of another owner is a conflict
  /// and is not changed. Unlike client-side apply, this stores no copy of a Secret in an annotation.
  std::vector<std::string> ApplyWords(const std::string& manager) const;
  /// The command that gets the pods and Jobs of start number `start` of the job.
  std::vector<std::string> GetWords(int start) const;
  /// The command that prints the pods and Jobs of the job for the user.
  std::vector<std::string> ShowWords() const;
  /// The command that deletes all objects of the job.
  std::vector<std::string> DeleteWords() const;
  /// A shell command that deletes all objects of the job after dmlc-submit has died.
  std::string CleanupCommand() const;

  /// Runs a command with `input` on its standard input, and kills it if it runs longer than `patience`.
  /// Returns its process ID, or -1 if it cannot be started; `done` is called later in either case.
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
