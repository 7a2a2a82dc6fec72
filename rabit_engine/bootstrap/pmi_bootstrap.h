// The bootstrap through the launcher's PMI-1 (pmi_client.h). It needs no MPI library and opens no port.
#pragma once

#include <chrono>
#include <memory>

#include "rabit_engine/bootstrap/bootstrap.h"

namespace warren {

/// The values that a PMI-1 launcher passes in environment variables.
struct PmiPlace {
  int descriptor = -1;  ///< PMI_FD
  int rank = 0;         ///< PMI_RANK
  int world_size = 1;   ///< PMI_SIZE
};

/// Contacts the launcher. Throws EngineError, also if the launcher does not answer within `timeout` or this
/// process has already finalized PMI. Shutdown reports to the launcher that the process has finished
/// successfully; if a process ends without Shutdown, the launcher considers the whole job failed.
std::unique_ptr<Bootstrap> MakePmiBootstrap(const PmiPlace& place, std::chrono::seconds timeout);

}  // namespace warren
