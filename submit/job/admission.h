// The rules by which a job's tracker admits workers (tracker/admission.h), derived from the options and the
// cluster.
#pragma once

#include "submit/options/options.h"
#include "tracker/admission.h"

namespace warren::submit {

/// Throws std::runtime_error if --admit hosts is given but the job's hosts or their addresses are not known.
tracker::AdmissionOptions AdmissionOf(const Options& options, const wire::JobToken& token);

}  // namespace warren::submit
