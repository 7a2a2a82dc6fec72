// Measures the reduction kernels against the memory bandwidth. Prints, for 2 to 33 inputs of a float sum:
//   fused     Reduction::CombineAll, which reads every input once, in the engine's order
//   pairs     Reduction::Combine once for each further input
//   in place  the naive loop: out[i] += in[i] for each further input
//   memcpy    copies of the same inputs, one after the other to one destination
// then every type and operation with 4 inputs, sums of 16-bit floats, which are rounded once, with 2 to 33
// inputs, and packing for the network (rabit_engine/transport/word_packing.h). All in GB/s of inputs read.
// The inputs are a little more than whole pages apart, so that they do not share sets of the cache.
//
//   reduce-kernels [KiB of each input = 64] [plain|avx2|avx512]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "rabit_engine/reduce/kernels.h"
#include "rabit_engine/transport/word_packing.h"

namespace {

using warren::DataType;
using warren::KernelTable;
using warren::ReduceOp;
using warren::Reduction;
using Clock = std::chrono::steady_clock;

/// Returns the seconds of one call of `work` in the fastest of several runs, the one that other load on the
/// machine disturbed least.
template <typename Work>
double BestSeconds(Work work) {
  double best = 1e9;
  for (int run = 0; run < 60; ++run) {
    int repeats = 0;
    const auto start = Clock::now();
    double seconds = 0;
    while (seconds < 0.001) {
      for (int i = 0; i < 8; ++i) work();
      repeats += 8;
      seconds = std::chrono::duration<double>(Clock::now() - start).count();
    }
    best = std::min(best, seconds / repeats);
  }
  return best;
}

class Inputs {
 public:
  Inputs(std::size_t inputs, std::size_t bytes) {
    const std::size_t stride = (bytes + 4095) / 4096 * 4096 + 4096 + 320;
    memory_.assign((inputs + 1) * stride + 64, std::byte{});
    auto* base = memory_.data() + (64 - reinterpret_cast<std::uintptr_t>(memory_.data()) % 64);
    for (std::size_t i = 0; i < inputs; ++i) pointers_.push_back(base + i * stride);
    out_ = base + inputs * stride;
  }
  const std::vector<const void*>& pointers() const { return pointers_; }
  void* out() { return out_; }

 private:
  std::vector<std::byte> memory_;
  std::vector<const void*> pointers_;
  std::byte* out_;
};

void Pairs(const Reduction& reduction, void* out, const std::vector<const void*>& inputs, std::size_t count) {
  reduction.Combine(out, inputs[0], inputs[1], count);
  for (std::size_t i = 2; i < inputs.size(); ++i) reduction.Combine(out, out, inputs[i], count);
}

void AddInPlace(float* __restrict out, const float* __restrict in, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] += in[i];
}

const KernelTable* TableOf(const std::string& name) {
  if (name == "plain") return &warren::PlainKernels();
  if (name == "avx2") return warren::Avx2Kernels();
  if (name == "avx512") return warren::Avx512Kernels();
  return &warren::BestKernels();
}

void Compare(const KernelTable& table, std::size_t bytes) {
  const Reduction reduction = Reduction::Typed(DataType::kFloat, ReduceOp::kSum, table);
  const std::size_t count = bytes / sizeof(float);
  std::printf("float sum, %zu KiB each, kernels: %s\n", bytes >> 10, table.name);
  std::printf("%7s %9s %9s %9s %9s %12s %13s\n", "inputs", "fused", "pairs", "in place", "memcpy",
              "fused/pairs", "fused/memcpy");
  for (const std::size_t inputs : {2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 24, 32, 33}) {
    Inputs memory(inputs, bytes);
    const auto& in = memory.pointers();
    const double gigabytes = static_cast<double>(inputs * bytes) / 1e9;
    const double fused = gigabytes / BestSeconds([&] { reduction.CombineAll(memory.out(), in, count); });
    const double pairs = gigabytes / BestSeconds([&] { Pairs(reduction, memory.out(), in, count); });
    const double in_place =
        gigabytes / BestSeconds([&] {
          std::memcpy(memory.out(), in[0], bytes);
          for (std::size_t i = 1; i < inputs; ++i) {
            AddInPlace(static_cast<float*>(memory.out()), static_cast<const float*>(in[i]), count);
          }
        });
    const double copy = gigabytes / BestSeconds([&] {
                          for (std::size_t i = 0; i < inputs; ++i) std::memcpy(memory.out(), in[i], bytes);
                        });
    std::printf("%7zu %9.1f %9.1f %9.1f %9.1f %12.2f %13.2f\n", inputs, fused, pairs, in_place, copy,
                fused / pairs, fused / copy);
  }
}

void EveryType(const KernelTable& table, std::size_t bytes) {
  std::printf("\n4 inputs of every type and operation, GB/s read\n%-20s", "");
  for (int operation = 0; operation < warren::kNumReduceOps; ++operation) {
    std::printf(" %11s", std::string(Name(static_cast<ReduceOp>(operation))).c_str());
  }
  std::printf("\n");
  Inputs memory(4, bytes);
  for (int code = 0; code < warren::kNumDataTypes; ++code) {
    const auto type = static_cast<DataType>(code);
    std::printf("%-20s", std::string(Name(type)).c_str());
    for (int operation = 0; operation < warren::kNumReduceOps; ++operation) {
      if (!IsDefined(type, static_cast<ReduceOp>(operation))) {
        std::printf(" %11s", "-");
        continue;
      }
      const Reduction reduction = Reduction::Typed(type, static_cast<ReduceOp>(operation), table);
      const double seconds =
          BestSeconds([&] { reduction.CombineAll(memory.out(), memory.pointers(), bytes / SizeOf(type)); });
      std::printf(" %11.1f", 4 * static_cast<double>(bytes) / 1e9 / seconds);
    }
    std::printf("\n");
  }
}

void SixteenBits(const KernelTable& table, std::size_t bytes) {
  std::printf("\nsums of 16-bit floats, GB/s read\n%7s %9s %9s\n", "inputs", "float16", "bfloat16");
  for (const std::size_t inputs : {2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 24, 32, 33}) {
    Inputs memory(inputs, bytes);
    std::printf("%7zu", inputs);
    for (const DataType type : {DataType::kFloat16, DataType::kBFloat16}) {
      const Reduction sum = Reduction::Typed(type, ReduceOp::kSum, table);
      const double seconds =
          BestSeconds([&] { sum.CombineAll(memory.out(), memory.pointers(), bytes / SizeOf(type)); });
      std::printf(" %9.1f", static_cast<double>(inputs * bytes) / 1e9 / seconds);
    }
    std::printf("\n");
  }
}

/// Measures packing of arrays of doubles in which a share of the values is zero, as in histograms of deep
/// nodes of a tree. The other values are floats stored as doubles.
void Packing(std::size_t bytes) {
  std::printf("\npacking doubles, GB/s of plain bytes\n%7s %9s %9s %9s %9s\n", "zeros", "length", "pack",
              "unpack", "sample");
  std::vector<double> plain(bytes / sizeof(double));
  std::vector<double> back(plain.size());
  std::vector<std::byte> code(warren::PackingCapacity(bytes) + warren::kUnpackSlack);
  for (const int percent : {0, 10, 50, 90, 99}) {
    std::minstd_rand random(1);
    for (double& value : plain) {
      const bool empty = static_cast<int>(random() % 100) < percent;
      value = empty ? 0.0 : static_cast<double>(static_cast<float>(random()) / 3.0f);
    }
    const auto data = std::as_bytes(std::span(plain));
    const std::size_t length = warren::PackWords(data, code.data());
    const auto rate = [&](double seconds) { return static_cast<double>(data.size()) / 1e9 / seconds; };
    double sum = 0;
    const double pack = rate(BestSeconds([&] { warren::PackWords(data, code.data()); }));
    const double unpack = rate(BestSeconds([&] {
      warren::UnpackWords({code.data(), length}, std::as_writable_bytes(std::span(back)));
    }));
    const double sample = rate(BestSeconds([&] { sum += warren::EstimatePackedShare(data); }));
    std::printf("%6d%% %8.1f%% %9.1f %9.1f %9.0f\n", percent,
                100 * static_cast<double>(length) / static_cast<double>(data.size()), pack, unpack,
                sum > 0 ? sample : 0.0);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t bytes = (argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 64) << 10;
  const KernelTable* const table = TableOf(argc > 2 ? argv[2] : "");
  if (bytes == 0 || table == nullptr) {
    std::fprintf(stderr, "usage: reduce-kernels [block KiB] [plain|avx2|avx512], one that this CPU has\n");
    return 2;
  }
  Compare(*table, bytes);
  EveryType(*table, bytes);
  SixteenBits(*table, bytes);
  Packing(bytes);
}
