// One allreduce of a simulated world, by any algorithm: how long it takes and what is sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/simulation/model.h"

namespace warren::simulation {

/// What the stages inside a host cost where ranks share memory, which are not simulated but measured: a stage
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
  bool order_matters = true;  ///< floats; or ints
  int operations = 1;         ///< one after the other
  std::uint64_t most_events = ~std::uint64_t{0};
};

struct Outcome {
  double seconds = 0;               ///< of one operation
  std::uint64_t most_messages = 0;  ///< of one rank, in one operation
  std::uint64_t all_messages = 0;
  std::uint64_t most_bytes = 0;
  std::uint64_t all_bytes = 0;
  std::uint64_t events = 0;
};

/// By an algorithm of the registry, or "double_tree" (double_tree.h; the best of some sizes of chunks).
/// Throws TooLong, and std::invalid_argument for what cannot be.
Outcome SimulateAllreduce(const std::string& algorithm, const Setting& setting);

/// What the engine would choose here.
std::string ChosenAllreduce(const Setting& setting);

/// The names that SimulateAllreduce knows, of those that can work in this setting.
std::vector<std::string> AllreduceAlgorithms(const Setting& setting);

}  // namespace warren::simulation
