#include "rabit_engine/base/tls_context.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string>

#include "rabit_engine/base/error.h"

namespace warren {

std::optional<tls::Context> TlsFor(const Settings& settings, std::string_view purpose) {
  if (!settings.tls) return std::nullopt;
  if (!settings.job_token) {
    throw Misuse(fmt::format(
        "WARREN_TLS=1 takes its key from the job's token, and {} is not set: "
        "start the job with dmlc-submit --tls, or with rabit-tracker --tls and the environment that it prints",
        wire::kTokenVariable));
  }
  try {
    return tls::Context(std::string(purpose), wire::TlsSecret(*settings.job_token, purpose));
  } catch (const std::runtime_error& error) {
    throw EngineError(fmt::format("WARREN_TLS=1: {}", error.what()));
  }
}

}  // namespace warren
