#include "tracker/admission.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace warren::tracker {
namespace {

/// Hosts that a refusal lists.
constexpr std::ptrdiff_t kMaxListed = 4;

}  // namespace

Admission::Admission(AdmissionOptions options)
    : options_(std::move(options)), seed_(wire::BytesOf(options_.seed)) {
  if (options_.token) keys_.emplace(*options_.token);
}

wire::Nonce Admission::NextNonce() {
  return seed_.Code({std::to_string(num_nonces_++)});
}

std::optional<std::string> Admission::Refusal(const std::string& host) const {
  if (!options_.token) return std::nullopt;
  if (closed_) {
    return fmt::format("it does not prove the job's token ({}), and the workers of this job do",
                       wire::kTokenVariable);
  }
  switch (options_.admit) {
    case Admit::kAny:
      break;
    case Admit::kToken:
      return fmt::format(
          "it does not prove the job's token ({}), as XGBoost's own workers cannot; --admit hosts or --admit "
          "any lets them in",
          wire::kTokenVariable);
    case Admit::kHosts: {
      if (options_.hosts.contains(host)) break;
      const auto end =
          std::next(options_.hosts.begin(), std::min<std::ptrdiff_t>(kMaxListed, std::ssize(options_.hosts)));
      return fmt::format(
          "it does not prove the job's token ({}), and {} is none of the job's {} hosts ({}{}); --admit any "
          "lets it in",
          wire::kTokenVariable, host, options_.hosts.size(), fmt::join(options_.hosts.begin(), end, ", "),
          end == options_.hosts.end() ? "" : ", ...");
    }
  }
  return std::nullopt;
}

}  // namespace warren::tracker
