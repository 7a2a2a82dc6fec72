// allreduce-gloo: a rank of gloo over TCP, configured by environment variables: BENCH_RANK, BENCH_WORLD_SIZE,
// BENCH_STORE (an empty folder that all ranks can access), BENCH_INTERFACE (the network interface) and
// BENCH_GLOO_ALGORITHM (ring, bcube, or halving_doubling: an older class that is still the fastest for some
// sizes).
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

#include "bench/allreduce/world.h"

namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') throw std::runtime_error(std::string(name) + " is not set");
  return value;
}

class GlooWorld : public warren::bench::World {
 public:
  GlooWorld() : algorithm_(Environment("BENCH_GLOO_ALGORITHM")) {
    gloo::transport::tcp::attr attributes;
    attributes.iface = Environment("BENCH_INTERFACE");
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    gloo::rendezvous::FileStore store(Environment("BENCH_STORE"));
    auto context = std::make_shared<gloo::rendezvous::Context>(std::stoi(Environment("BENCH_RANK")),
                                                               std::stoi(Environment("BENCH_WORLD_SIZE")));
    context->connectFullMesh(store, device);
    context_ = context;
  }

  int rank() const override { return context_->rank; }
  int size() const override { return context_->size; }

  void Prepare(float* data, [[maybe_unused]] std::size_t count) override {
    if (algorithm_ != "halving_doubling") return;
#ifndef __clang_analyzer__  // it reports a division by zero in gloo's header
    bound_ = std::make_unique<gloo::AllreduceHalvingDoubling<float>>(context_, std::vector<float*>{data},
                                                                     static_cast<int>(count));
#endif
    bound_data_ = data;
  }
  void Allreduce(float* data, std::size_t count) override {
    if (bound_ != nullptr && data == bound_data_) return bound_->run();
    gloo::AllreduceOptions options(context_);
    options.setOutput(data, count);
    options.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
    options.setAlgorithm(algorithm_ == "bcube" ? gloo::AllreduceOptions::Algorithm::BCUBE
                                               : gloo::AllreduceOptions::Algorithm::RING);
    options.setTag(tag_++);
    gloo::allreduce(options);
  }
  void Broadcast(void* data, std::size_t bytes, int root) override {
    gloo::BroadcastOptions options(context_);
    options.setOutput(static_cast<char*>(data), bytes);
    options.setRoot(root);
    options.setTag(tag_++);
    gloo::broadcast(options);
  }
  void Allgather(void* data, std::size_t bytes_each) override {
    gloo::AllgatherOptions options(context_);
    options.setOutput(static_cast<char*>(data), bytes_each * size());
    options.setTag(tag_++);
    gloo::allgather(options);
  }
  void Barrier() override {
    gloo::BarrierOptions options(context_);
    options.setTag(tag_++);
    gloo::barrier(options);
  }

 private:
  std::string algorithm_;
  std::shared_ptr<gloo::Context> context_;
  std::uint32_t tag_ = 0;
  std::unique_ptr<gloo::AllreduceHalvingDoubling<float>> bound_;  ///< bound to the buffer being measured
  float* bound_data_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  return warren::bench::RunWorker(argc, argv, [] { return std::make_unique<GlooWorld>(); });
}
