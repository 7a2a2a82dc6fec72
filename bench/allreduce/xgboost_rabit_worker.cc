// allreduce-xgboost: a rank of the rabit library in XGBoost 1.7, called through XGBoost's C API. Finds the
// tracker by DMLC_TRACKER_URI and DMLC_TRACKER_PORT. BENCH_NO_DELAY=1 turns TCP_NODELAY on.
#include <xgboost/c_api.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "bench/allreduce/world.h"

namespace {

// Values from xgboost::collective::DataType and Operation.
constexpr int kFloat = 6;
constexpr int kSum = 2;

void CheckXgboost(int result) {
  if (result != 0) throw std::runtime_error(XGBGetLastError());
}

class XgboostWorld : public warren::bench::World {
 public:
  XgboostWorld() {
    const char* no_delay = std::getenv("BENCH_NO_DELAY");
    const bool with_no_delay = no_delay != nullptr && std::strcmp(no_delay, "1") == 0;
    CheckXgboost(XGCommunicatorInit(with_no_delay ? R"({"rabit_enable_tcp_no_delay": "true"})" : "{}"));
  }
  ~XgboostWorld() override { XGCommunicatorFinalize(); }
  XgboostWorld(const XgboostWorld&) = delete;
  XgboostWorld& operator=(const XgboostWorld&) = delete;

  int rank() const override { return XGCommunicatorGetRank(); }
  int size() const override { return XGCommunicatorGetWorldSize(); }
  void Allreduce(float* data, std::size_t count) override {
    CheckXgboost(XGCommunicatorAllreduce(data, count, kFloat, kSum));
  }
  void Broadcast(void* data, std::size_t bytes, int root) override {
    CheckXgboost(XGCommunicatorBroadcast(data, bytes, root));
  }
  void Barrier() override {
    float nothing = 0;
    Allreduce(&nothing, 1);
  }
};

}  // namespace

int main(int argc, char** argv) {
  return warren::bench::RunWorker(argc, argv, [] { return std::make_unique<XgboostWorld>(); });
}
