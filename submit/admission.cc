#include "submit/admission.h"

#include <spdlog/spdlog.h>

#include <stdexcept>

#include "submit/cluster/clusters.h"
#include "tracker/host_address.h"

namespace warren::submit {

tracker::AdmissionOptions AdmissionOf(const Options& options, const wire::JobToken& token,
                                      const std::string& bound) {
  using tracker::Admit;
  tracker::AdmissionOptions admission;
  admission.token = token;
  admission.tls = options.tls;
  admission.admit = options.admit.value_or(tracker::IsLoopback(bound) ? Admit::kAny : Admit::kHosts);
  if (admission.admit != Admit::kHosts) return admission;
  const std::vector<std::string> names = KnownHosts(options);
  try {
    for (const std::string& name : names) admission.hosts.merge(tracker::AddressesOf(name));
  } catch (const std::runtime_error& error) {
    if (options.admit) throw std::runtime_error(fmt::format("--admit hosts: {}", error.what()));
    spdlog::debug("workers without the job's token are admitted from anywhere: {}", error.what());
    admission.hosts.clear();
  }
  if (admission.hosts.empty() && !options.admit) {
    admission.admit = Admit::kAny;
  } else {
    admission.hosts.merge(tracker::AddressesOfThisMachine());
  }
  return admission;
}

}  // namespace warren::submit
