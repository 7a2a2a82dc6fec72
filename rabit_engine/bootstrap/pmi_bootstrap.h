// Ranks find each other through the launcher's PMI-1 (pmi_client.h): no MPI library and no port needed.
#pragma once

#include <chrono>
#include <memory>

#include "rabit_engine/bootstrap/bootstrap.h"

namespace warren {

/// What a launcher that speaks PMI-1 leaves in the environment.
struct PmiPlace {
  int descriptor = -1;  ///< PMI_FD
  int rank = 0;         ///< PMI_RANK
  int world_size = 1;   ///< PMI_SIZE
};

/// Greets the launcher. Throws EngineError or TimedOut. Shutdown tells the launcher that the process ends
/// well; a launcher takes the end of a process that has not said so for a failure of the whole job.
std::unique_ptr<Bootstrap> MakePmiBootstrap(const PmiPlace& place, std::chrono::seconds timeout);

}  // namespace warren
