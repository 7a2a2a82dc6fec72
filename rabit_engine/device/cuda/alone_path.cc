#include "rabit_engine/device/cuda/error.h"
#include "rabit_engine/device/cuda/path.h"

namespace warren::device {
namespace {

class AlonePath final : public CollectivePath {
 public:
  std::string Describe() const override { return "copies (one rank)"; }
  bool CanBeCaptured() const override { return true; }
  void Enqueue(std::span<const Operation> calls) override {
    for (const Operation& call : calls) {
      if (call.send == call.receive || call.count == 0) continue;
      Check(cudaMemcpyAsync(call.receive, call.send, SendBytes(call, 1), cudaMemcpyDeviceToDevice,
                            StreamOf(call)),
            "copying a buffer");
    }
  }
};

}  // namespace

std::unique_ptr<CollectivePath> MakeAlonePath() {
  return std::make_unique<AlonePath>();
}

}  // namespace warren::device
