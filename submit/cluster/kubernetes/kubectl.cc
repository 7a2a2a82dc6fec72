#include "submit/cluster/kubernetes/kubectl.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <utility>

#include "submit/cluster/kubernetes/manifest.h"
#include "submit/process/command.h"
#include "submit/process/environment.h"

namespace warren::submit {
namespace {

std::string FindKubectl() {
  try {
    return std::filesystem::absolute(FindCommand("kubectl", SearchPath()).file).string();
  } catch (const CommandError&) {
    throw std::runtime_error(
        "--cluster kubernetes: kubectl is not on PATH; --kube-manifest FILE works without it and writes the manifest");
  }
}

}  // namespace

Kubectl::Kubectl(boost::asio::io_context& io, Children& children, const Options& options,
                 std::function<void()> on_end)
    : io_(io), children_(children), options_(options), on_end_(std::move(on_end)), path_(FindKubectl()) {}

std::vector<std::string> Kubectl::Words(const std::vector<std::string>& words) const {
  std::vector<std::string> whole = {path_};
  whole.insert(whole.end(), options_.kube_args.begin(), options_.kube_args.end());
  if (!options_.kube_namespace.empty()) whole.insert(whole.end(), {"--namespace", options_.kube_namespace});
  whole.insert(whole.end(), words.begin(), words.end());
  return whole;
}

std::vector<std::string> Kubectl::ApplyWords(const std::string& manager) const {
  return Words({"apply", "--server-side", "--field-manager", manager, "-f", "-"});
}

std::vector<std::string> Kubectl::GetWords(int start) const {
  return Words({"get", "pods,jobs", "--selector",
                fmt::format("{}={},{}={}", kJobLabel, options_.job_name, kStartLabel, start), "-o", "json"});
}

std::vector<std::string> Kubectl::ShowWords() const {
  return Words({"get", "pods,jobs", "--selector", fmt::format("{}={}", kJobLabel, options_.job_name)});
}

std::vector<std::string> Kubectl::DeleteWords() const {
  return Words({"delete", "jobs,services,secrets", "--selector",
                fmt::format("{}={}", kJobLabel, options_.job_name), "--ignore-not-found", "--wait=false"});
}

/// The command makes up to six attempts, until two have succeeded: a kubectl that creates objects may still
/// have been running during the first deletion.
std::string Kubectl::CleanupCommand() const {
  return fmt::format(
      "(cd {} || exit; worked=0; for pause in 0 2 5 10 20 40; do sleep $pause; if timeout 30 {}; then worked=$((worked + 1)); [ $worked -lt 2 ] || break; fi; done)",
      ShellQuote(std::filesystem::current_path().string()), ShellCommand(DeleteWords()));
}

pid_t Kubectl::Run(const std::vector<std::string>& words, const std::string& input,
                   std::chrono::seconds patience, const Done& done) {
  const auto printed = std::make_shared<std::string>();
  const auto complained = std::make_shared<std::string>();
  const auto pid = std::make_shared<pid_t>(-1);
  const auto limit = std::make_shared<boost::asio::steady_timer>(io_, patience);
  spdlog::debug("{}", ShellCommand(words));
  try {
    *pid = children_.Start({words.front(), words, InheritedWith({}, {}), !input.empty()},
                           {[printed, complained](Stream stream, std::string_view bytes) {
                              *(stream == Stream::kOut ? printed : complained) += bytes;
                            },
                            [this, pid, limit, printed, complained, done](const ExitStatus& status) {
                              limit->cancel();
                              running_.erase(*pid);
                              on_end_();
                              done(status.ok() ? *printed : *complained + *printed, status);
                            }});
  } catch (const std::runtime_error& error) {
    boost::asio::post(io_, [done, said = std::string(error.what())] {
      done(said, {kNotFound, 0, false, {}});
    });
    return -1;
  }
  running_.insert(*pid);
  limit->async_wait([this, pid, limit, patience](const boost::system::error_code& error) {
    if (error) return;
    spdlog::debug("kubectl has not ended within {} s", patience.count());
    children_.Kill({*pid});
  });
  if (!input.empty()) {
    children_.Write(*pid, input);
    children_.CloseInput(*pid);
  }
  return *pid;
}

}  // namespace warren::submit
