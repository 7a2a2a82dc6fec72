#include "tracker/admission.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "wire/bytes.h"
#include "wire/printable.h"

namespace warren::tracker {
namespace {

/// The maximum number of hosts listed in a refusal.
constexpr std::ptrdiff_t kMostHostsShown = 4;

}  // namespace

Admission::Admission(AdmissionOptions options)
    : options_(std::move(options)), seed_(wire::BytesOf(options_.seed)) {
  if (options_.token) keys_.emplace(*options_.token);
}

wire::Nonce Admission::NextNonce() {
  return seed_.Code({std::to_string(num_nonces_++)});
}

void Admission::Vouch(const wire::Vouch& vouch, const std::string& host) {
  tickets_.insert_or_assign(vouch.ticket, Ticket{vouch.task_id, host});
  hosts_with_tickets_.insert(host);
}

std::string Admission::TaskOf(std::string_view shown, const std::string& host, bool starts,
                              const std::string& refusal) {
  const auto split = wire::SplitTicket(shown);
  if (!split) throw wire::ProtocolError(refusal);
  const auto found = tickets_.find(split->ticket);
  const std::string task = wire::Printable(split->task_id);
  if (found == tickets_.end() || found->second.task_id != split->task_id) {
    throw wire::ProtocolError(
        fmt::format("it claims to be task {}, but no worker of this job has vouched for it", task));
  }
  Ticket& ticket = found->second;
  if (ticket.host != host) {
    throw wire::ProtocolError(
        fmt::format("task {} was vouched for at {}, but this peer is at {}", task, ticket.host, host));
  }
  if (starts && std::exchange(ticket.used, true)) {
    throw wire::ProtocolError(fmt::format("task {} has already started with this ticket", task));
  }
  return split->task_id;
}

std::optional<std::string> Admission::Refusal(const std::string& host, bool is_own_user) const {
  if (!options_.token) return std::nullopt;
  if (closed_) {
    return fmt::format("it does not prove the job's token ({}), but the workers of this job do",
                       wire::kTokenVariable);
  }
  switch (options_.admit) {
    case Admit::kAny:
      break;
    case Admit::kToken:
      return fmt::format(
          "it does not prove the job's token ({}); XGBoost's own workers cannot, and --admit hosts or --admit any admits them",
          wire::kTokenVariable);
    case Admit::kUser:
      if (is_own_user) break;
      return fmt::format(
          "it does not prove the job's token ({}), and is not a process of the tracker's user on the tracker's machine; "
          "if it is a worker of this job that uses XGBoost's own communication without warren.xgboost, --admit hosts admits workers from the job's hosts, "
          "and --admit any admits all workers",
          wire::kTokenVariable);
    case Admit::kHosts: {
      if (options_.hosts.contains(host)) break;
      const auto end = std::next(options_.hosts.begin(),
                                 std::min<std::ptrdiff_t>(kMostHostsShown, std::ssize(options_.hosts)));
      return fmt::format(
          "it does not prove the job's token ({}), and {} is not one of the job's {} hosts ({}{}); --admit any admits it",
          wire::kTokenVariable, host, options_.hosts.size(), fmt::join(options_.hosts.begin(), end, ", "),
          end == options_.hosts.end() ? "" : ", ...");
    }
  }
  return std::nullopt;
}

}  // namespace warren::tracker
