#include "rabit_engine/bootstrap/slurm_bootstrap.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>

#include "rabit_engine/base/tls_context.h"
#include "rabit_engine/bootstrap/pmi_bootstrap.h"
#include "rabit_engine/bootstrap/slurm_meeting.h"
#include "rabit_engine/bootstrap/slurm_step.h"
#include "wire/variables.h"

namespace warren {
namespace {

std::optional<int> NumberFromEnvironment(const char* name) {
  const auto text = wire::FromEnvironment(name);
  int value = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc{})
    return std::nullopt;
  return value;
}

/// Returns the launcher's PMI variables, or nullopt if any is missing or invalid, or if the descriptor is not
/// open in this process.
std::optional<PmiPlace> FindPmi() {
  const auto descriptor = NumberFromEnvironment("PMI_FD");
  const auto rank = NumberFromEnvironment("PMI_RANK");
  const auto size = NumberFromEnvironment("PMI_SIZE");
  if (!descriptor || !rank || !size || fcntl(*descriptor, F_GETFD) < 0) return std::nullopt;
  if (*rank < 0 || *rank >= *size) return std::nullopt;
  return PmiPlace{*descriptor, *rank, *size};
}

}  // namespace

std::unique_ptr<Bootstrap> MakeSlurmBootstrap(const Settings& settings) {
  if (const auto place = FindPmi()) return MakePmiBootstrap(*place, settings.connect_timeout);
  SlurmStep step = ReadSlurmStep(&wire::FromEnvironment);
  if (settings.job_token) {
    step.token = wire::ToHex(wire::BytesOf(settings.job_token->Derive("meeting", step.id)));
    step.has_job_token = true;
  }
  return MeetAtRankZero(step, settings.connect_timeout, TlsFor(settings, wire::kTlsOfMeeting));
}

}  // namespace warren
