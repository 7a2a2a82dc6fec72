#include "rabit_engine/mpi/mpi_engine.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "rabit_engine/base/error.h"
#include "rabit_engine/base/say.h"
#include "rabit_engine/bootstrap/tracker_connection.h"
#include "rabit_engine/mpi/mpi_communicator.h"
#include "rabit_engine/mpi/mpi_library.h"
#include "wire/classic.h"

namespace warren {
namespace {

bool IsStartedByLauncher(const MpiClues& clues) {
  return clues.launcher || std::getenv("SLURM_STEP_ID") != nullptr;
}

}  // namespace

std::unique_ptr<Communicator> JoinMpi(const Settings& settings) {
  const MpiClues clues = MpiCluesOfThisProcess();
  const WarrenMpi& mpi = LoadMpi(clues);
  MpiCommunicator::Options options;
  options.has_tracker = !settings.tracker_host.empty();
  if (options.has_tracker) {
    options.print = [settings](const std::string& text) {
      PrintAtTracker(settings, {.task_id = settings.task_id}, text);
    };
  }
  auto world = std::make_unique<MpiCommunicator>(mpi, std::move(options));
  if (world->world_size() == 1 && clues.launched_processes > 1) {
    throw EngineError(fmt::format(
        "on {}: the launcher started {} processes, but {} sees only this one: it is not the launcher's MPI. Start the program with the mpirun of {} (under Slurm: "
        "srun --mpi=pmix for Open MPI, --mpi=pmi2 for MPICH), or name the plugin of the launcher's MPI in WARREN_MPI_LIBRARY",
        world->host(), clues.launched_processes, mpi.name, mpi.name));
  }
  const bool is_engine_requested = settings.engine == EngineKind::kMpi && DefaultEngine() != EngineKind::kMpi;
  if (world->world_size() == 1 && !IsStartedByLauncher(clues) &&
      (is_engine_requested || settings.bootstrap == BootstrapKind::kMpi)) {
    Say("rabit: {} is set, but neither mpirun nor srun started this process, so it is a job by itself: start the program with mpirun, or unset the variable",
        is_engine_requested ? "WARREN_ENGINE=mpi" : "WARREN_BOOTSTRAP=mpi");
  }
  if (world->rank() == 0) {
    std::string unused;
    if (settings.collective_timeout.count() > 0) unused += " rabit_timeout";
    if (!settings.algorithm.empty()) unused += " " + settings.algorithm_name;
    if (!settings.host_group.empty()) unused += " WARREN_HOST_GROUP";
    if (!unused.empty()) Say("rabit: over MPI (WARREN_ENGINE=mpi) these settings have no effect:{}", unused);
  }
  return world;
}

}  // namespace warren
