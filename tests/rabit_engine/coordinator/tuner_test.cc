#include "rabit_engine/coordinator/tuner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace warren::coordinator {
namespace {

/// Runs the tuner on simulated measurements in which `best` is fastest, with some noise and an occasional
/// cycle that is ten times slower. Returns the tuner's choice.
Settings TunedTowards(const Settings& best, unsigned seed) {
  std::mt19937 random(seed);
  Tuner tuner({2 << 20, 1000});
  for (int cycle = 0; cycle < 100'000 && !tuner.is_done(); ++cycle) {
    const Settings& now = tuner.settings();
    const auto distance = [](std::uint64_t one, std::uint64_t two) {
      return std::abs(std::log2(static_cast<double>(one)) - std::log2(static_cast<double>(two)));
    };
    double seconds = 0.01 * (1 + 0.2 * distance(now.fusion_bytes, best.fusion_bytes) +
                             0.2 * distance(now.cycle_us, best.cycle_us));
    seconds *= 1 + 0.02 * static_cast<double>(random() % 100) / 100;
    if (random() % 200 == 0) seconds *= 10;
    tuner.Add(1'000'000, seconds);
  }
  EXPECT_TRUE(tuner.is_done());
  return tuner.settings();
}

TEST(Tuner, FindsTheBestInSpiteOfNoise) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    EXPECT_EQ(TunedTowards({256 << 10, 300}, seed), (Settings{256 << 10, 300}));
    EXPECT_EQ(TunedTowards({64 << 20, 3000}, seed), (Settings{64 << 20, 3000}));
    EXPECT_EQ(TunedTowards({2 << 20, 1000}, seed), (Settings{2 << 20, 1000})) << "what it began with";
  }
}

TEST(Tuner, KeepsTheTimeForWhichItWaitsForRanks) {
  Settings begin{2 << 20, 1000};
  begin.patience = 7;
  Tuner tuner(begin);
  for (int cycle = 0; cycle < 100'000 && !tuner.is_done(); ++cycle) {
    EXPECT_EQ(tuner.settings().patience, begin.patience) << "in cycle " << cycle;
    tuner.Add(1'000'000, 0.01);
  }
  EXPECT_TRUE(tuner.is_done());
  EXPECT_EQ(tuner.settings().patience, begin.patience);
}

TEST(Tuner, CyclesWithoutBytesDecideNothing) {
  Tuner tuner({1 << 20, 1000});
  for (int cycle = 0; cycle < 10'000; ++cycle) tuner.Add(0, 1);
  EXPECT_EQ(tuner.settings(), (Settings{1 << 20, 1000}));
  EXPECT_FALSE(tuner.is_done());
}

}  // namespace
}  // namespace warren::coordinator
