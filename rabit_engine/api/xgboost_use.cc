#include "rabit_engine/api/xgboost_use.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "rabit_engine/xgboost/loaded_library.h"

namespace warren::api {
namespace {

std::atomic<bool> was_noted = false;

class Use {
 public:
  ~Use() {
    const char* tracker = std::getenv("DMLC_TRACKER_URI");
    if (was_noted || tracker == nullptr || *tracker == '\0') return;
    const auto xgboost = xgboost::LoadedLibrary::Named("libxgboost.so");
    if (!xgboost) return;
    const char* why =
        "this XGBoost is older than 2.1, and does not export the functions of 1.7 (PyPI's wheels hide them)";
    if (xgboost->Find("_ZN5rabit6engine4InitEiPPc") != nullptr) {
      why =
          "XGBoost's own functions come first: link librabit_xgboost before libxgboost, or preload it (LD_PRELOAD)";
    } else if (xgboost->Find("XGCommunicatorAllgather") != nullptr) {
      why =
          "with XGBoost 2.1 and later it serves only programs that call XGCommunicatorInit by name; in Python use warren.xgboost.communicator() or accelerate()";
    }
    std::fprintf(stderr,
                 "rabit: librabit_xgboost.so is loaded, but XGBoost did not communicate over it; %s\n", why);
  }
};
const Use use;

}  // namespace

void NoteXgboostsUse() {
  was_noted.store(true, std::memory_order_relaxed);
}

}  // namespace warren::api
