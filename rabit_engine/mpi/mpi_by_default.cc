// The only object that is in librabit_mpi but not in librabit: programs linked with librabit_mpi run over MPI
// unless WARREN_ENGINE selects another engine. Its DefaultEngine replaces the weak definition in
// base/settings.cc.
#include "rabit_engine/base/settings.h"

namespace warren {

EngineKind DefaultEngine() {
  return EngineKind::kMpi;
}

}  // namespace warren
