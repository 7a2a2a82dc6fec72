// An allreduce in a simulated world, by any algorithm: the time it takes and the traffic it causes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/simulation/model.h"

namespace warren::simulation {

/// The costs of the stages inside a host whose ranks share memory, which are measured, not simulated: a stage
/// over `ranks` ranks and b bytes takes (ranks - 1) * latency + b * ps_per_byte.
struct HostStages {
  Time latency = 0;
  double reduce_ps_per_byte = 0;
  double spread_ps_per_byte = 0;
};

struct Setting {
  Model model;
  HostStages host_stages;
  int ranks = 2;
  int ranks_of_host = 1;
  std::size_t bytes = 8;
  bool order_matters = true;  ///< sums floats if true, else ints
  int operations = 1;         ///< consecutive allreduces
  std::uint64_t most_events = ~std::uint64_t{0};
};

struct Outcome {
  double seconds = 0;               ///< per operation
  std::uint64_t most_messages = 0;  ///< per operation, by the rank that sends most
  std::uint64_t all_messages = 0;
  std::uint64_t most_bytes = 0;
  std::uint64_t all_bytes = 0;
  std::uint64_t events = 0;
};

/// Simulates an algorithm of the registry, or "double_tree" (double_tree.h, with the best of several chunk
/// sizes). Throws TooLong, and std::invalid_argument for an unknown algorithm.
Outcome SimulateAllreduce(const std::string& algorithm, const Setting& setting);

/// The algorithm that the engine would choose in this setting.
std::string ChosenAllreduce(const Setting& setting);

/// The names of the algorithms of SimulateAllreduce that work in this setting.
std::vector<std::string> AllreduceAlgorithms(const Setting& setting);

}  // namespace warren::simulation
