// TLS as requested by WARREN_TLS=1.
#pragma once

#include <optional>
#include <string_view>

#include "rabit_engine/base/settings.h"
#include "tls/session.h"

namespace warren {

/// Returns the job's TLS context for one of the purposes in wire/job_token.h; nullopt if TLS is not
/// requested. Throws Misuse if there is no job token from which to derive the key; EngineError if the context
/// cannot be created, e.g. because OpenSSL is missing.
std::optional<tls::Context> TlsFor(const Settings& settings, std::string_view purpose);

}  // namespace warren
