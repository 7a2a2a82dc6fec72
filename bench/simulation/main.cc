// loggp-simulation: simulates allreduces and prints one line of JSON for each. bench/loggp starts it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bench/simulation/allreduce.h"
#include "bench/simulation/world.h"

namespace {

using namespace warren::simulation;

constexpr int kExitFailed = 1;

Time FromSeconds(double seconds) {
  return static_cast<Time>(seconds * 1e12);
}

/// Sets parameters by name, in seconds, bytes, and seconds per byte.
class Parameters {
 public:
  explicit Parameters(Setting& setting) {
    AddPath("inside", setting.model.inside);
    AddPath("between", setting.model.between);
    AddTime("poll", setting.model.poll);
    AddTime("turn", setting.model.turn);
    AddTime("wake_up", setting.model.wake_up);
    AddTime("wake", setting.model.wake);
    AddTime("patience", setting.model.patience);
    AddRate("combine", setting.model.combine_ps_per_byte);
    AddTime("host.latency", setting.host_stages.latency);
    AddRate("host.reduce", setting.host_stages.reduce_ps_per_byte);
    AddRate("host.spread", setting.host_stages.spread_ps_per_byte);
  }

  /// Sets a parameter from text like "between.latency=1e-5". Throws std::invalid_argument.
  void Set(const std::string& text) const {
    const auto equals = text.find('=');
    const auto found = setters_.find(text.substr(0, equals));
    if (equals == std::string::npos || found == setters_.end()) {
      throw std::invalid_argument(
          fmt::format("'{}': expected a parameter, an equals sign and a number", text));
    }
    found->second(std::stod(text.substr(equals + 1)));
  }

 private:
  void AddPath(const std::string& name, Path& path) {
    AddTime(name + ".send", path.send_overhead);
    AddTime(name + ".receive", path.receive_overhead);
    AddRate(name + ".send_byte", path.send_ps_per_byte);
    AddRate(name + ".receive_byte", path.receive_ps_per_byte);
    AddTime(name + ".miss", path.miss);
    AddTime(name + ".latency", path.latency);
    AddTime(name + ".gap", path.gap);
    AddRate(name + ".gap_byte", path.gap_ps_per_byte);
    setters_[name + ".buffer"] = [&path](double bytes) {
      path.buffer_bytes = static_cast<std::size_t>(bytes);
    };
  }
  void AddTime(const std::string& name, Time& time) {
    setters_[name] = [&time](double seconds) { time = FromSeconds(seconds); };
  }
  void AddRate(const std::string& name, double& ps_per_byte) {
    setters_[name] = [&ps_per_byte](double seconds) { ps_per_byte = seconds * 1e12; };
  }

  std::map<std::string, std::function<void(double)>> setters_;
};

void Run(const Setting& setting, const std::vector<std::string>& wanted) {
  const auto begin = fmt::format("\"ranks\": {}, \"ranks_of_host\": {}, \"bytes\": {}, \"order_matters\": {}",
                                 setting.ranks, setting.ranks_of_host, setting.bytes, setting.order_matters);
  fmt::print("{{{}, \"chosen\": \"{}\"}}\n", begin, ChosenAllreduce(setting));
  for (const std::string& algorithm : wanted.empty() ? AllreduceAlgorithms(setting) : wanted) {
    try {
      const Outcome outcome = SimulateAllreduce(algorithm, setting);
      fmt::print(
          "{{{}, \"algorithm\": \"{}\", \"seconds\": {:.6g}, \"most_messages\": {}, \"all_messages\": {}, \"most_bytes\": {}, \"all_bytes\": {}, \"events\": {}}}\n",
          begin, algorithm, outcome.seconds, outcome.most_messages, outcome.all_messages, outcome.most_bytes,
          outcome.all_bytes, outcome.events);
    } catch (const TooLong&) {
      fmt::print("{{{}, \"algorithm\": \"{}\", \"seconds\": null}}\n", begin, algorithm);
    }
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Simulates allreduces of the engine with its own code over a LogGP model; prints JSON.");
  Setting setting;
  std::vector<std::string> parameters;
  std::vector<std::string> algorithms;
  std::vector<std::size_t> sizes;
  bool integers = false;
  app.add_option("--set", parameters, "a parameter of the model, such as between.latency=1e-5");
  app.add_option("--ranks", setting.ranks)->required();
  app.add_option("--ranks-of-host", setting.ranks_of_host)->capture_default_str();
  app.add_option("--cores", setting.model.cores_of_host, "cores of a host")->capture_default_str();
  app.add_option("--bytes", sizes, "sizes of the vectors in bytes")->required();
  app.add_option("--algorithms", algorithms, "algorithms to simulate; default: all");
  app.add_flag("--integers", integers, "the order of the reduction does not matter");
  app.add_option("--operations", setting.operations, "operations, one after the other")
      ->capture_default_str();
  app.add_option("--segment", setting.model.segment_bytes, "pieces in which long messages travel")
      ->capture_default_str();
  app.add_option("--most-events", setting.most_events, "give up after this many events");
  CLI11_PARSE(app, argc, argv);
  try {
    setting.order_matters = !integers;
    const Parameters known(setting);
    for (const std::string& text : parameters) known.Set(text);
    for (const std::size_t bytes : sizes) {
      setting.bytes = bytes;
      Run(setting, algorithms);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "loggp-simulation: {}\n", error.what());
    return kExitFailed;
  }
  return 0;
}
