#include "rabit_engine/engine/join.h"

#include <fmt/format.h>

#include <charconv>

#include "rabit_engine/base/error.h"
#include "rabit_engine/bootstrap/none_bootstrap.h"
#include "rabit_engine/bootstrap/slurm_bootstrap.h"
#include "rabit_engine/bootstrap/tracker_bootstrap.h"
#include "rabit_engine/engine/native_communicator.h"
#include "rabit_engine/mpi/mpi_bootstrap.h"
#include "rabit_engine/mpi/mpi_engine.h"

namespace warren {
namespace {

/// Returns the world size set by torchrun or a similar launcher; 1 if no such launcher started this process.
/// WORLD_SIZE alone proves nothing: other programs set it, too.
int TorchWorldSize(const wire::LookUp& look_up) {
  if (!look_up("RANK") || !look_up("MASTER_ADDR") || !look_up("MASTER_PORT")) return 1;
  const std::string text = look_up("WORLD_SIZE").value_or("");
  int size = 1;
  std::from_chars(text.data(), text.data() + text.size(), size);
  return size;
}

/// Throws Misuse if rabit_world_size names another number of ranks. With a tracker, TrackerBootstrap checks
/// it.
std::unique_ptr<Communicator> Checked(std::unique_ptr<Communicator> joined, const Settings& settings) {
  if (settings.world_size > 0 && settings.world_size != joined->world_size()) {
    throw Misuse(fmt::format(
        "rabit_world_size={}, but this process has joined a world of {} without a tracker: name the tracker (DMLC_TRACKER_URI), "
        "start the program with dmlc-submit, or unset rabit_world_size",
        settings.world_size, joined->world_size()));
  }
  return joined;
}

}  // namespace

std::unique_ptr<Communicator> Join(const Settings& settings) {
  if (settings.engine == EngineKind::kMpi) {
    if (settings.tls) {
      throw Misuse(
          "WARREN_TLS=1 requires encryption, but with MPI (WARREN_ENGINE=mpi, or a program linked with librabit_mpi), MPI moves the data unencrypted: "
          "set WARREN_ENGINE=native, or WARREN_TLS=0 where the network between the hosts is trusted");
    }
    return Checked(JoinMpi(settings), settings);
  }
  if (JoinsThroughTracker(settings)) return JoinThroughTracker(settings);
  switch (settings.bootstrap) {
    case BootstrapKind::kMpi:
      return Checked(JoinOver(MakeMpiBootstrap(settings), settings), settings);
    case BootstrapKind::kSlurm:
      return Checked(JoinOver(MakeSlurmBootstrap(settings), settings), settings);
    default:
      return Checked(
          std::make_unique<NativeCommunicator>(std::make_unique<NoneBootstrap>(), Listening{}, settings),
          settings);
  }
}

std::unique_ptr<NativeCommunicator> JoinOver(std::unique_ptr<Bootstrap> bootstrap, const Settings& settings) {
  return std::make_unique<NativeCommunicator>(std::move(bootstrap), ListenHere(settings), settings);
}

BootstrapKind BootstrapOfLauncher(const MpiClues& clues, const wire::LookUp& look_up) {
  // A launcher of a job with parameter servers has also started the servers, so its processes are not all
  // ranks.
  if (look_up("DMLC_PS_ROOT_URI")) return BootstrapKind::kNone;
  const int torch_size = look_up("DMLC_JOB_CLUSTER") ? 1 : TorchWorldSize(look_up);
  if (torch_size > 1 && torch_size != clues.launched_processes) {
    throw Misuse(fmt::format(
        "RANK={}, WORLD_SIZE={}, MASTER_ADDR and MASTER_PORT are set, so torchrun or a similar launcher started {} processes, "
        "but no tracker is named that could join them into one job: "
        "start the program with dmlc-submit --num-workers {}, or set WARREN_BOOTSTRAP=none if they are separate programs",
        *look_up("RANK"), torch_size, torch_size, torch_size));
  }
  if (clues.launched_processes <= 1) return BootstrapKind::kNone;
  // If MPI is loaded in this process, MPI itself uses the launcher's PMI, so this library cannot. Open MPI's
  // launcher does not offer PMI-1.
  if (clues.in_process || look_up("OMPI_COMM_WORLD_SIZE")) return BootstrapKind::kMpi;
  return look_up("PMI_FD") || look_up("SLURM_STEP_ID") ? BootstrapKind::kSlurm : BootstrapKind::kMpi;
}

bool JoinsThroughTracker(const Settings& settings) {
  if (settings.engine == EngineKind::kMpi) return false;
  if (settings.bootstrap == BootstrapKind::kTracker && settings.tracker_host.empty()) {
    throw Misuse(
        "WARREN_BOOTSTRAP=tracker, but no tracker is named: set DMLC_TRACKER_URI and DMLC_TRACKER_PORT, or start the program with dmlc-submit");
  }
  return settings.bootstrap == BootstrapKind::kTracker ||
         (settings.bootstrap == BootstrapKind::kAuto && !settings.tracker_host.empty());
}

std::unique_ptr<NativeCommunicator> JoinThroughTracker(const Settings& settings, std::optional<int> rank,
                                                       const std::string& greeting) {
  auto bootstrap = std::make_unique<TrackerBootstrap>(settings, rank);
  Listening listening{{}, bootstrap->ListenAddresses()};
  listening.socket = tcp::Socket(bootstrap->TakeListener());
  return std::make_unique<NativeCommunicator>(std::move(bootstrap), std::move(listening), settings, greeting);
}

}  // namespace warren
