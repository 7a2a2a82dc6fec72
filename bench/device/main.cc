// device-bench: measures a GPU and its collectives; one rank of a job. scripts/gpu-check starts it.
//
//   device-bench copy [bytes]          copies on the device, bytes read and written per second
//   device-bench rabit [most bytes]    RabitDeviceAllreduce of float sums, 4 B to most bytes (1 GiB)
//   device-bench nccl [most bytes]     the same with direct calls of the NCCL that WARREN_NCCL_PATH names
//   device-bench histogram [rows]      the histogram kernel of examples/histgbt: 28 features of 256 bins
//   device-bench overlap [bytes]       a sum of host memory, a computation that takes as long, and both
//                                      concurrently
//
// Rank 0 prints a line for each size: mode, ranks, bytes (histogram: rows), microseconds per call, and GB/s
// as nccl-tests defines them ("algbw": bytes divided by time; "busbw": that times 2 (n - 1) / n). Calls are
// made one after the other (on a stream, except for overlap), in rounds; the result is the median of the
// rounds, on the slowest rank.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <rabit/device.h>
#include <rabit/rabit.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "examples/histgbt/cuda/device_array.h"
#include "examples/histgbt/cuda/kernels.h"
#include "rabit_engine/device/cuda/nccl_library.h"
#include "warren/collectives.h"

namespace {

using warren::histgbt::CheckCuda;
using warren::histgbt::DeviceArray;
using Clock = std::chrono::steady_clock;

constexpr int kRounds = 9;
constexpr std::size_t kMostBytes = std::size_t{1} << 30;

void Meet() {
  int nothing = 0;
  rabit::Allreduce<rabit::op::Sum>(&nothing, 1);
}

/// Returns the microseconds of a call: the median over rounds of calls, on the slowest rank.
double Microseconds(const std::function<void()>& call, const std::function<void()>& wait) {
  for (int i = 0; i < 3; ++i) call();
  wait();
  // A round has enough calls to take about 20 ms, but at most 1,000; the same number on all ranks.
  Meet();
  Clock::time_point begin = Clock::now();
  call();
  wait();
  double one = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  rabit::Allreduce<rabit::op::Max>(&one, 1);
  const int calls = std::clamp(static_cast<int>(20000 / one), 1, 1000);
  std::vector<double> times;
  for (int round = 0; round < kRounds; ++round) {
    Meet();
    begin = Clock::now();
    for (int i = 0; i < calls; ++i) call();
    wait();
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / calls);
  }
  std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
  double median = times[kRounds / 2];
  rabit::Allreduce<rabit::op::Max>(&median, 1);
  return median;
}

void Print(const std::string& mode, std::size_t bytes, double microseconds, double bytes_counted) {
  if (rabit::GetRank() != 0) return;
  const double ranks = rabit::GetWorldSize();
  const double algbw = bytes_counted / microseconds / 1000;
  fmt::print("{} ranks={} bytes={} us={:.2f} algbw={:.2f} busbw={:.2f}\n", mode, ranks, bytes, microseconds,
             algbw, algbw * 2 * (ranks - 1) / ranks);
  std::fflush(stdout);
}

void Copy(std::size_t bytes) {
  const DeviceArray<char> from(bytes);
  const DeviceArray<char> to(bytes);
  cudaStream_t stream = nullptr;
  CheckCuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
  const double time = Microseconds(
      [&] {
        CheckCuda(cudaMemcpyAsync(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice, stream),
                  "copying");
      },
      [&] { CheckCuda(cudaStreamSynchronize(stream), "copying"); });
  Print("copy", bytes, time, 2.0 * static_cast<double>(bytes));
}

using Allreduce = std::function<void(float* data, std::size_t count, cudaStream_t stream)>;

void Sizes(const std::string& mode, std::size_t most, const Allreduce& allreduce) {
  DeviceArray<float> data(most / sizeof(float));
  cudaStream_t stream = nullptr;
  CheckCuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
  data.Zero(stream);
  for (std::size_t bytes = sizeof(float); bytes <= most; bytes *= 4) {
    const double time = Microseconds([&] { allreduce(data.data(), bytes / sizeof(float), stream); },
                                     [&] { CheckCuda(cudaStreamSynchronize(stream), "an allreduce"); });
    Print(mode, bytes, time, static_cast<double>(bytes));
  }
}

void ByRabit(std::size_t most) {
  Sizes("rabit", most, [](float* data, std::size_t count, cudaStream_t stream) {
    rabit::device::Allreduce(data, count, RABIT_DEVICE_SUM, stream);
  });
  if (rabit::GetRank() == 0) fmt::print("path {}\n", RabitDeviceDescribe());
}

void ByNccl(std::size_t most) {
  const warren::device::NcclLibrary& nccl = warren::device::Nccl();
  const auto check = [&nccl](ncclResult_t result) {
    if (result != ncclSuccess) throw std::runtime_error(nccl.GetErrorString(result));
  };
  ncclUniqueId id{};
  if (rabit::GetRank() == 0) check(nccl.GetUniqueId(&id));
  rabit::Broadcast(&id, sizeof id, 0);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclComm_t communicator = nullptr;
  check(nccl.CommInitRankConfig(&communicator, rabit::GetWorldSize(), id, rabit::GetRank(), &config));
  Sizes("nccl", most, [&](float* data, std::size_t count, cudaStream_t stream) {
    check(nccl.AllReduce(data, data, count, ncclFloat32, ncclSum, communicator, stream));
  });
  check(nccl.CommDestroy(communicator));
}

/// Measures the histogram of one node with all rows in order, like the root of a tree.
void Histogram(std::uint32_t num_rows) {
  using namespace warren::histgbt;  // NOLINT(google-build-using-namespace)
  constexpr std::uint32_t kFeatures = 28;
  std::vector<std::uint8_t> bins(static_cast<std::size_t>(num_rows) * kFeatures);
  std::vector<std::uint32_t> rows(num_rows);
  std::vector<Packed> packed(num_rows);
  std::mt19937_64 random(1);
  for (std::size_t i = 0; i < bins.size(); ++i) bins[i] = static_cast<std::uint8_t>(random());
  for (std::uint32_t row = 0; row < num_rows; ++row) {
    rows[row] = row;
    packed[row] = static_cast<Packed>(random() % (1U << kHessianBits));
  }
  std::vector<std::uint32_t> first_bins;
  for (std::uint32_t f = 0; f <= kFeatures; ++f) first_bins.push_back(f * 256);
  std::vector<DevicePiece> pieces;
  for (std::uint32_t begin = 0; begin < num_rows; begin += kPackedRows)
    pieces.push_back({0, begin, std::min(num_rows, begin + kPackedRows)});
  cudaStream_t stream = nullptr;
  CheckCuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
  DeviceArray<std::uint8_t> device_bins;
  DeviceArray<std::uint32_t> device_rows;
  DeviceArray<Packed> device_packed;
  DeviceArray<std::uint32_t> device_first_bins;
  DeviceArray<DevicePiece> device_pieces;
  DeviceArray<GradientSum> sums(first_bins.back());
  device_bins.Upload(bins, stream);
  device_rows.Upload(rows, stream);
  device_packed.Upload(packed, stream);
  device_first_bins.Upload(first_bins, stream);
  device_pieces.Upload(pieces, stream);
  sums.Zero(stream);
  const DeviceMatrix matrix{Layout::kDense8, kFeatures, device_bins.data(),      nullptr,
                            nullptr,         nullptr,   device_first_bins.data()};
  const double time = Microseconds(
      [&] {
        Launch(SharedHistogramKernel{matrix, kFeatures, 1, device_rows.data(), device_packed.data(),
                                     device_pieces.data(), sums.data()},
               static_cast<unsigned>(pieces.size()), stream);
      },
      [&] { CheckCuda(cudaStreamSynchronize(stream), "a histogram"); });
  const double bytes = static_cast<double>(num_rows) * (kFeatures + sizeof(std::uint32_t) + sizeof(Packed));
  Print("histogram", num_rows, time, bytes);
}

/// Computes without memory access, for a time proportional to `steps`.
void Compute(std::uint64_t steps) {
  std::uint64_t state = 1;
  for (std::uint64_t i = 0; i < steps; ++i) state = state * 6364136223846793005U + 1442695040888963407U;
  asm volatile("" : "+r"(state));
}

void Overlap(std::size_t bytes) {
  constexpr std::uint64_t kTrial = 2'000'000;
  const warren::Communicator world = warren::World();
  std::vector<float> data(bytes / sizeof(float));
  float* const begin = data.data();
  const auto measure = [&](const char* mode, const std::function<void()>& call) {
    const double time = Microseconds(call, [] {});
    Print(mode, bytes, time, static_cast<double>(bytes));
    return time;
  };
  const double sum = measure("sum", [&] { world.Allreduce(begin, data.size(), warren::Op::kSum); });
  const double trial = Microseconds([] { Compute(kTrial); }, [] {});
  const auto steps = static_cast<std::uint64_t>(kTrial * sum / trial);
  measure("computation", [&] { Compute(steps); });
  measure("both", [&] {
    warren::Handle handle = world.AsyncAllreduce(begin, begin, data.size(), warren::Op::kSum);
    Compute(steps);
    handle.Wait();
  });
}

void Run(const std::vector<std::string>& words) {
  const std::string mode = words.empty() ? "" : words[0];
  const std::size_t number = words.size() > 1 ? std::stoull(words[1]) : 0;
  if (mode == "overlap") return Overlap(number == 0 ? std::size_t{16} << 20 : number);
  rabit::device::Select();
  if (mode == "copy") return Copy(number == 0 ? kMostBytes : number);
  if (mode == "rabit") return ByRabit(number == 0 ? kMostBytes : number);
  if (mode == "nccl") return ByNccl(number == 0 ? kMostBytes : number);
  if (mode == "histogram") return Histogram(number == 0 ? 10'000'000 : static_cast<std::uint32_t>(number));
  throw std::runtime_error(
      "device-bench copy [bytes] | rabit [bytes] | nccl [bytes] | histogram [rows] | overlap [bytes]");
}

}  // namespace

int main(int argc, char* argv[]) {
  try {
    rabit::Init(0, nullptr);
    Run({argv + 1, argv + argc});
    return rabit::Finalize() ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "device-bench: {}\n", error.what());
    return 1;
  }
}
