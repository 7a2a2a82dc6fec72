// Finds the MPI that this process belongs to, and loads the plugin for it. A process must use the MPI of the
// launcher that started it; with another MPI it would be the only rank of its world. The variables that the
// launcher has set show which MPI the launcher belongs to.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rabit_engine/mpi/mpi_plugin.h"
#include "wire/variables.h"

namespace warren {

enum class MpiKind { kOpenMpi, kMpich };
std::string_view Name(MpiKind kind);

/// The information that is available before a plugin is loaded. Plain values, so that the choice can be
/// tested.
struct MpiClues {
  std::string library;                ///< the plugin requested by the user (WARREN_MPI_LIBRARY)
  std::string library_reason;         ///< the variable that names `library`
  std::optional<MpiKind> in_process;  ///< the MPI that this process has already loaded
  std::optional<MpiKind> launcher;    ///< the MPI of mpirun, mpiexec or srun
  std::string launcher_reason;        ///< the variable that identifies `launcher`
  int launched_processes = 1;         ///< the world size that the launcher announced; 1 if unknown
};

/// Reads WARREN_MPI_LIBRARY and the variables that launchers set. The first of these variables that is set
/// decides: OMPI_COMM_WORLD_SIZE means Open MPI, PMI_RANK means MPICH (and its relatives MVAPICH, Intel MPI
/// and Cray MPICH), PMIX_RANK means Open MPI; SLURM_STEP_ID identifies no MPI. Leaves `in_process` empty.
MpiClues ReadMpiClues(const wire::LookUp& look_up);

/// Returns the files to try, best first: WARREN_MPI_LIBRARY alone, else the plugin for the MPI in the
/// process, else for the launcher's MPI, else for any MPI. A plugin is searched for in `folders`, then in the
/// loader's own search path.
std::vector<std::string> PluginCandidates(const MpiClues& clues, std::span<const std::string> folders);

/// Returns the plugin for this process, which is loaded once and never unloaded. Throws an EngineError that
/// lists the files that were tried.
const WarrenMpi& LoadMpi(const MpiClues& clues);

/// Returns the clues of this process: those of ReadMpiClues, and the MPI that the process has loaded.
MpiClues MpiCluesOfThisProcess();

}  // namespace warren
