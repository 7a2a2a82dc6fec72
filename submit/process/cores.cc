#include "submit/process/cores.h"

#include <algorithm>

namespace warren::submit {

int ThreadsOfWorker(int cores, int workers) {
  return std::max(1, cores / std::max(1, workers));
}

}  // namespace warren::submit
