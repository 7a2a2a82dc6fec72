// The one object that librabit_mpi has and librabit has not: programs linked with it run over MPI unless
// WARREN_ENGINE says otherwise. Its DefaultEngine takes the place of the weak one in base/settings.cc.
#include "rabit_engine/base/settings.h"

namespace warren {

EngineKind DefaultEngine() {
  return EngineKind::kMpi;
}

}  // namespace warren
