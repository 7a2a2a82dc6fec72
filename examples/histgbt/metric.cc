#include "examples/histgbt/metric.h"

#include <fmt/format.h>
#include <rabit/rabit.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "examples/histgbt/arithmetic.h"

namespace warren::histgbt {
namespace {

constexpr float kLeastProbability = 1e-16F;
/// Maximum number of bits of a loss or weight that is rounded to a whole number.
constexpr int kMostFractionBits = 40;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr float kAucRange = 16;
constexpr std::size_t kAucSteps = 65536;

float Probability(const Predictions& p, std::size_t row) {
  return Sigmoid(p.margins[row]);
}

float Prediction(const Predictions& p, std::size_t row) {
  return p.objective == Objective::kLogistic ? Probability(p, row) : p.margins[row];
}

double Logloss(const Predictions& p, std::size_t row) {
  const float probability = Probability(p, row);
  const float label = p.labels[row];
  const auto log_of = [](float x) { return std::log(static_cast<double>(std::max(x, kLeastProbability))); };
  return -(label * log_of(probability) + (1.0 - label) * log_of(1.0F - probability));
}

double Error(const Predictions& p, std::size_t row) {
  return (Probability(p, row) > 0.5F) == (p.labels[row] > 0.5F) ? 0 : 1;
}

double SquaredError(const Predictions& p, std::size_t row) {
  const double off = static_cast<double>(Prediction(p, row)) - p.labels[row];
  return off * off;
}

double AbsoluteError(const Predictions& p, std::size_t row) {
  return std::abs(static_cast<double>(Prediction(p, row)) - p.labels[row]);
}

float MarginOf(const Predictions& p, std::size_t row, int k) {
  return p.margins[static_cast<std::size_t>(k) * p.labels.size() + row];
}

int BestClass(const Predictions& p, std::size_t row) {
  int best = 0;
  for (int k = 1; k < p.num_class; ++k) {
    if (MarginOf(p, row, k) > MarginOf(p, row, best)) best = k;
  }
  return best;
}

double MultiError(const Predictions& p, std::size_t row) {
  return BestClass(p, row) == static_cast<int>(p.labels[row]) ? 0 : 1;
}

double MultiLogloss(const Predictions& p, std::size_t row) {
  const float greatest = MarginOf(p, row, BestClass(p, row));
  double sum = 0;
  for (int k = 0; k < p.num_class; ++k) sum += Exp(MarginOf(p, row, k) - greatest);
  const double own = MarginOf(p, row, static_cast<int>(p.labels[row])) - greatest;
  return std::min(std::log(sum) - own, -std::log(static_cast<double>(kLeastProbability)));
}

struct Metric {
  std::string_view name;
  double (*loss)(const Predictions&, std::size_t row);  ///< null for auc
  bool root = false;                                    ///< take the square root of the mean
  bool of_classes = false;
  bool of_probabilities = false;
};

constexpr std::array<Metric, 7> kMetrics = {{
    {"auc", nullptr, false, false, true},
    {"logloss", Logloss, false, false, true},
    {"error", Error, false, false, true},
    {"rmse", SquaredError, true, false, false},
    {"mae", AbsoluteError, false, false, false},
    {"merror", MultiError, false, true, false},
    {"mlogloss", MultiLogloss, false, true, false},
}};

const Metric* Find(std::string_view name) {
  const auto* const at =
      std::find_if(kMetrics.begin(), kMetrics.end(), [&](const Metric& m) { return m.name == name; });
  return at == kMetrics.end() ? nullptr : at;
}

double WeightOf(const Predictions& p, std::size_t row) {
  return p.weights.empty() ? 1.0 : p.weights[row];
}

/// Returns the weighted mean of `loss` over the rows of all workers.
double Mean(const Predictions& p, double (*loss)(const Predictions&, std::size_t), Threads& threads) {
  const std::size_t rows = p.labels.size();
  std::vector<double> losses(rows);
  std::vector<std::array<double, 2>> greatest(static_cast<std::size_t>(threads.count()));
  threads.ForRanges(rows, 1024, [&](std::size_t begin, std::size_t end, int thread) {
    std::array<double, 2>& most = greatest[static_cast<std::size_t>(thread)];
    for (std::size_t row = begin; row < end; ++row) {
      losses[row] = loss(p, row) * WeightOf(p, row);
      // std::max would pass over NaN.
      const double loss_or_infinity = std::isnan(losses[row]) ? kInfinity : losses[row];
      most = {std::max(most[0], loss_or_infinity), std::max(most[1], WeightOf(p, row))};
    }
  });
  std::array<double, 2> most{};
  for (const auto& one : greatest) most = {std::max(most[0], one[0]), std::max(most[1], one[1])};
  rabit::Allreduce<rabit::op::Max>(most.data(), most.size());
  std::uint64_t all_rows = rows;
  rabit::Allreduce<rabit::op::Sum>(&all_rows, 1);
  if (!std::isfinite(most[0])) return std::numeric_limits<double>::quiet_NaN();

  int row_bits = 0;
  while (all_rows >> row_bits != 0) ++row_bits;
  const int bits = std::min(kMostFractionBits, 62 - row_bits);
  std::array<int, 2> exponents{};
  for (std::size_t i = 0; i < 2; ++i) std::frexp(most[i], &exponents[i]);
  std::vector<std::array<std::int64_t, 2>> parts(static_cast<std::size_t>(threads.count()));
  threads.ForRanges(rows, 1024, [&](std::size_t begin, std::size_t end, int thread) {
    std::array<std::int64_t, 2>& sum = parts[static_cast<std::size_t>(thread)];
    for (std::size_t row = begin; row < end; ++row) {
      sum[0] += std::llrint(std::ldexp(losses[row], bits - exponents[0]));
      sum[1] += std::llrint(std::ldexp(WeightOf(p, row), bits - exponents[1]));
    }
  });
  std::array<std::int64_t, 2> sum{};
  for (const auto& part : parts) sum = {sum[0] + part[0], sum[1] + part[1]};
  rabit::Allreduce<rabit::op::Sum>(sum.data(), sum.size());
  return std::ldexp(static_cast<double>(sum[0]), exponents[0]) /
         std::ldexp(static_cast<double>(sum[1]), exponents[1]);
}

/// The number of bits to which Auc rounds the greatest weight; the others are rounded to the same unit.
constexpr int kAucWeightBits = 20;

double Auc(const Predictions& p, Threads& threads) {
  double most = 0;
  for (const float weight : p.weights) most = std::max<double>(most, weight);
  if (p.weights.empty() && !p.labels.empty()) most = 1;
  if (std::any_of(p.margins.begin(), p.margins.end(), [](float margin) { return std::isnan(margin); }))
    most = kInfinity;
  rabit::Allreduce<rabit::op::Max>(&most, 1);
  if (!std::isfinite(most)) return std::numeric_limits<double>::quiet_NaN();
  int exponent = 0;
  std::frexp(most, &exponent);

  // For each step, the total weight of the rows with label 0 and of the rows with label 1.
  using Steps = std::vector<std::array<std::int64_t, 2>>;
  std::vector<Steps> parts(static_cast<std::size_t>(threads.count()));
  threads.ForRanges(p.labels.size(), 16384, [&](std::size_t begin, std::size_t end, int thread) {
    Steps& steps = parts[static_cast<std::size_t>(thread)];
    steps.resize(kAucSteps);
    for (std::size_t row = begin; row < end; ++row) {
      const float margin = std::clamp(p.margins[row], -kAucRange, kAucRange);
      const auto step = static_cast<std::size_t>((margin + kAucRange) * (kAucSteps / (2 * kAucRange)));
      const std::int64_t weight = std::llrint(std::ldexp(WeightOf(p, row), kAucWeightBits - exponent));
      steps[std::min(step, kAucSteps - 1)][p.labels[row] > 0.5F ? 1 : 0] += weight;
    }
  });
  Steps all(kAucSteps);
  for (const Steps& steps : parts) {
    for (std::size_t i = 0; i < steps.size(); ++i)
      all[i] = {all[i][0] + steps[i][0], all[i][1] + steps[i][1]};
  }
  rabit::Allreduce<rabit::op::Sum>(all.front().data(), 2 * all.size());

  double zeros_below = 0;
  double ones = 0;
  double pairs = 0;
  for (const auto& [zero, one] : all) {
    pairs += static_cast<double>(one) * (zeros_below + 0.5 * static_cast<double>(zero));
    zeros_below += static_cast<double>(zero);
    ones += static_cast<double>(one);
  }
  return pairs / (zeros_below * ones);
}

}  // namespace

bool IsMetric(std::string_view name) {
  return Find(name) != nullptr;
}

std::string_view DefaultMetric(Objective objective) {
  switch (objective) {
    case Objective::kSquared:
      return "rmse";
    case Objective::kLogistic:
      return "logloss";
    case Objective::kSoftmax:
      break;
  }
  return "mlogloss";
}

void CheckMetric(std::string_view name, Objective objective) {
  const Metric& metric = *Find(name);
  if (metric.of_classes != (objective == Objective::kSoftmax) ||
      (metric.of_probabilities && objective != Objective::kLogistic)) {
    throw std::runtime_error(fmt::format("the metric {} does not apply to {}", name, Name(objective)));
  }
}

bool IsBetterWhenGreater(std::string_view name) {
  return name == "auc";
}

double Evaluate(std::string_view name, const Predictions& predictions, Threads& threads) {
  const Metric& metric = *Find(name);
  if (metric.loss == nullptr) return Auc(predictions, threads);
  const double mean = Mean(predictions, metric.loss, threads);
  return metric.root ? std::sqrt(mean) : mean;
}

}  // namespace warren::histgbt
