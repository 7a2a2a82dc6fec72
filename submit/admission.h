// Who may take part in the job at its tracker (tracker/admission.h), as the options and the cluster have it.
#pragma once

#include <string>

#include "submit/options.h"
#include "tracker/admission.h"

namespace warren::submit {

/// `bound`: the address that the tracker listens at. Hosts of the job count as known when all of their names
/// have addresses here.
tracker::AdmissionOptions AdmissionOf(const Options& options, const wire::JobToken& token,
                                      const std::string& bound);

}  // namespace warren::submit
