// A training run without the mathematics, for bench/recovery: it computes, sums and checkpoints in the
// pattern of XGBoost's `hist`.
//
//   recovery-worker rounds=N rows=N features=N recover=0|1 [watch]
//
// A round is a tree of kDepth levels. For each level, every rank adds its rows' gradients to a histogram for
// each node (real work: random access into a matrix of bins), and all ranks sum the histograms. At the end of
// a round, the model grows and is checkpointed. recover=0 does the same without LoadCheckPoint and
// LazyCheckPoint.
// Rank 0 prints {"seconds": of all rounds}. With `watch`, instead, each rank prints its pid and the start
// time of its process, and rank 0 prints each pause longer than kPause between two sums, in seconds of the
// monotonic clock.
#include <rabit/rabit.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr int kDepth = 6;
constexpr std::size_t kBins = 256;
constexpr double kPause = 0.005;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::size_t Argument(int argc, char** argv, const char* name, std::size_t otherwise) {
  const std::size_t length = std::strlen(name);
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], name, length) == 0 && argv[i][length] == '=') {
      return std::strtoull(argv[i] + length + 1, nullptr, 10);
    }
  }
  return otherwise;
}

struct Model : rabit::Serializable {
  std::vector<double> trees;
  void Load(rabit::Stream* stream) override { stream->Read(&trees); }
  void Save(rabit::Stream* stream) const override { stream->Write(trees); }
};

struct Gradient {
  double first, second;
};

class Rows {
 public:
  Rows(std::size_t rows, std::size_t features) : features_(features), bins_(rows * features), node_(rows) {
    std::uint32_t seed = 1 + static_cast<std::uint32_t>(rabit::GetRank());
    for (std::uint8_t& bin : bins_)
      bin = static_cast<std::uint8_t>((seed = seed * 1664525 + 1013904223) >> 24);
  }
  void AddTo(std::vector<double>& histogram, int level) {
    const auto nodes = std::size_t{1} << level;
    for (std::size_t row = 0; row < node_.size(); ++row) {
      node_[row] =
          level == 0
              ? 0
              : static_cast<std::uint16_t>((2 * node_[row] + (bins_[row * features_ + level] & 1U)) % nodes);
      const Gradient gradient{1.0 / static_cast<double>(1 + row % 17), 0.25};
      double* of_node = histogram.data() + node_[row] * features_ * kBins * 2;
      for (std::size_t feature = 0; feature < features_; ++feature) {
        double* bin = of_node + (feature * kBins + bins_[row * features_ + feature]) * 2;
        bin[0] += gradient.first;
        bin[1] += gradient.second;
      }
    }
  }

 private:
  std::size_t features_;
  std::vector<std::uint8_t> bins_;
  std::vector<std::uint16_t> node_;
};

}  // namespace

int main(int argc, char** argv) {
  const double began = Now();
  const auto rounds = static_cast<int>(Argument(argc, argv, "rounds", 10));
  const std::size_t features = Argument(argc, argv, "features", 28);
  const bool recover = Argument(argc, argv, "recover", 1) == 1;
  const bool watch = std::strcmp(argv[argc - 1], "watch") == 0;
  rabit::Init(argc, argv);
  if (watch) {
    std::printf("rank %d pid %d began %.6f\n", rabit::GetRank(), static_cast<int>(getpid()), began);
    std::fflush(stdout);
  }
  Model model;
  int version = recover ? rabit::LoadCheckPoint(&model) : 0;
  Rows rows(Argument(argc, argv, "rows", 50'000), features);
  std::vector<double> histogram;
  double last = Now();
  const double start = last;
  for (; version < rounds; ++version) {
    for (int level = 0; level < kDepth; ++level) {
      histogram.assign((std::size_t{1} << level) * features * kBins * 2, 0.0);
      rows.AddTo(histogram, level);
      rabit::Allreduce<rabit::op::Sum>(histogram.data(), histogram.size());
      if (watch && rabit::GetRank() == 0) {
        const double now = Now();
        if (now - last > kPause) {
          std::printf("pause %.6f %.6f\n", last, now);
          std::fflush(stdout);
        }
        last = now;
      }
    }
    model.trees.insert(model.trees.end(), histogram.begin(), histogram.begin() + (1 << kDepth));
    if (recover) rabit::LazyCheckPoint(&model);
  }
  if (!watch && rabit::GetRank() == 0) std::printf("{\"seconds\": %.6f}\n", Now() - start);
  rabit::Finalize();
  return 0;
}
