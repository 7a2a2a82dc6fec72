// The rules by which the tracker of a job admits workers (tracker/admission.h), from the options and the
// cluster.
#pragma once

#include "submit/options.h"
#include "tracker/admission.h"

namespace warren::submit {

/// Throws std::runtime_error where --admit hosts is given and the hosts of the job, or their addresses, are
/// not known.
tracker::AdmissionOptions AdmissionOf(const Options& options, const wire::JobToken& token);

}  // namespace warren::submit
