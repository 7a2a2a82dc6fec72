// A scheduler, server or worker of bench/parameter_server. ps-lite (dmlc/ps-lite) is compiled into this
// program. Servers add up the pushed arrays, and worker 0 prints the seconds of each push and pull. Argument:
// the size of the array in bytes.
#include <ps/ps.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <unordered_map>
#include <vector>

namespace {

constexpr int kSlices = 64;  // keys, spread over the servers
constexpr int kRounds = 4;   // the first one warms up

void Serve(std::unordered_map<ps::Key, std::vector<float>>& store, const ps::KVMeta& meta,
           const ps::KVPairs<float>& data, ps::KVServer<float>* server) {
  ps::KVPairs<float> answer;
  if (meta.push) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < data.keys.size(); ++i) {
      std::vector<float>& slice = store[data.keys[i]];
      const auto length = static_cast<std::size_t>(data.lens[i]);
      slice.resize(length);
      for (std::size_t j = 0; j < length; ++j) slice[j] += data.vals[at + j];
      at += length;
    }
    return server->Response(meta, answer);
  }
  answer.keys = data.keys;
  std::size_t total = 0;
  for (const ps::Key key : data.keys) total += store[key].size();
  answer.vals.resize(total);
  std::size_t at = 0;
  for (const ps::Key key : data.keys) {
    const std::vector<float>& slice = store[key];
    std::copy(slice.begin(), slice.end(), answer.vals.data() + at);
    answer.lens.push_back(static_cast<int>(slice.size()));
    at += slice.size();
  }
  server->Response(meta, answer);
}

void Work(std::size_t count) {
  ps::KVWorker<float> worker(0, 0);
  const std::size_t length = count / kSlices;
  ps::SArray<ps::Key> keys(kSlices);
  ps::SArray<int> lengths(kSlices, static_cast<int>(length));
  for (int i = 0; i < kSlices; ++i) keys[i] = ps::kMaxKey / kSlices * i;
  ps::SArray<float> given(length * kSlices, 1.0F);
  ps::SArray<float> taken(length * kSlices);
  for (int round = 0; round < kRounds; ++round) {
    ps::Postoffice::Get()->Barrier(0, ps::kWorkerGroup);
    const auto begin = std::chrono::steady_clock::now();
    worker.Wait(worker.ZPush(keys, given, lengths));
    ps::Postoffice::Get()->Barrier(0, ps::kWorkerGroup);
    worker.Wait(worker.ZPull(keys, &taken, &lengths));
    ps::Postoffice::Get()->Barrier(0, ps::kWorkerGroup);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const auto expected = static_cast<float>((round + 1) * ps::NumWorkers());
    if (taken[0] != expected || taken[taken.size() - 1] != expected) {
      std::fprintf(stderr, "wrong result: %f, expected %f\n", taken[0], expected);
      std::_Exit(3);
    }
    if (ps::MyRank() == 0 && round > 0) std::printf("seconds %f\n", seconds);
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  ps::Start(0);
  std::unordered_map<ps::Key, std::vector<float>> store;
  if (ps::IsServer()) {
    auto* const server = new ps::KVServer<float>(0);
    server->set_request_handle([&store](const ps::KVMeta& meta, const ps::KVPairs<float>& data,
                                        ps::KVServer<float>* self) { Serve(store, meta, data, self); });
    ps::RegisterExitCallback([server] { delete server; });
  }
  if (ps::IsWorker()) Work(static_cast<std::size_t>(argc > 1 ? std::atoll(argv[1]) : 0) / sizeof(float));
  ps::Finalize(0, true);
  return 0;
}
