// What WARREN_TLS=1 asks for.
#pragma once

#include <optional>
#include <string_view>

#include "rabit_engine/base/settings.h"
#include "tls/session.h"

namespace warren {

/// The TLS of this job for one of the purposes in wire/job_token.h; nothing where it is not asked for. Throws
/// Misuse when there is no job token to take its key from, EngineError when OpenSSL is missing.
std::optional<tls::Context> TlsFor(const Settings& settings, std::string_view purpose);

}  // namespace warren
