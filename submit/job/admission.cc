#include "submit/job/admission.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "submit/cluster/clusters.h"
#include "tracker/host_address.h"

namespace warren::submit {

tracker::AdmissionOptions AdmissionOf(const Options& options, const wire::JobToken& token) {
  tracker::AdmissionOptions admission;
  admission.token = token;
  admission.tls = options.tls;
  admission.admit = options.admit;
  if (admission.admit != tracker::Admit::kHosts) return admission;
  const std::vector<std::string> names = KnownHosts(options);
  if (names.empty() && options.cluster != "local") {
    throw std::runtime_error(
        fmt::format("--admit hosts: the hosts of this job are not known before it starts (--cluster {}); "
                    "use --admit any, or join through warren.xgboost.communicator(), which needs neither",
                    options.cluster));
  }
  try {
    for (const std::string& name : names) admission.hosts.merge(tracker::AddressesOf(name));
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("--admit hosts: {}", error.what()));
  }
  admission.hosts.merge(tracker::AddressesOfThisMachine());
  return admission;
}

}  // namespace warren::submit
