#include "rabit_engine/bootstrap/slurm_bootstrap.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "rabit_engine/base/error.h"
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
  // The launcher's variables are there, but its descriptor is not. If Slurm's variables do not say the same,
  // they describe the launcher's own processes, each of which may have started several ranks.
  const auto size = NumberFromEnvironment("PMI_SIZE").value_or(1);
  const bool is_slurms = size == NumberFromEnvironment("SLURM_STEP_NUM_TASKS") &&
                         NumberFromEnvironment("PMI_RANK") == NumberFromEnvironment("SLURM_PROCID");
  if (size > 1 && wire::FromEnvironment("PMI_FD") && !is_slurms) {
    throw EngineError(fmt::format(
        "WARREN_BOOTSTRAP=slurm: the launcher has started {} processes, and its descriptor PMI_FD={} is not open in this one: "
        "a program in between has closed it (in Python: subprocess with close_fds=True). Keep it open (pass_fds), or start the program directly, "
        "or use a tracker",
        size, *wire::FromEnvironment("PMI_FD")));
  }
  SlurmStep step = ReadSlurmStep(&wire::FromEnvironment);
  if (settings.job_token) {
    step.token = wire::ToHex(wire::BytesOf(settings.job_token->Derive("meeting", step.id)));
    step.has_job_token = true;
  }
  return MeetAtRankZero(step, settings.connect_timeout, TlsFor(settings, wire::kTlsOfMeeting));
}

}  // namespace warren
