// A world of simulated ranks. Each runs the engine's own code over a Transport whose links have the costs of
// the model, in virtual time. No bytes are moved except the tags that ranks compare, so all ranks may use one
// buffer.
//
// This is a discrete-event simulation. A rank's clock may run ahead of the others until the rank does
// something that others see or that depends on others; then everything earlier is simulated first. Events of
// equal time are handled in the order in which they were created, so every run is the same.
//
// A rank with a core to itself waits as the engine does (transport/waiting.h): it polls for `patience`, then
// sleeps. On a host with more ranks than cores, waiting ranks take turns on the cores, and a turn that finds
// nothing costs as much as any other. A working rank keeps its core until it waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <queue>
#include <vector>

#include "bench/simulation/fiber.h"
#include "bench/simulation/model.h"
#include "rabit_engine/reduce/reduction.h"
#include "rabit_engine/transport/transport.h"

namespace warren::simulation {

/// The traffic sent by one rank.
struct Traffic {
  std::uint64_t messages = 0;  ///< sends that moved data
  std::uint64_t bytes = 0;     ///< including tags
};

class World {
 public:
  /// Places `ranks_of_host` consecutive ranks on each host; the last host may have fewer.
  World(const Model& model, int ranks, int ranks_of_host = 1);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Runs `body` on every rank, starting at time 0; returns when the last rank has ended. Throws what a body
  /// throws, and std::logic_error on a deadlock. May be called once.
  void Run(const std::function<void(Transport& transport)>& body);

  int size() const { return static_cast<int>(ranks_.size()); }
  /// The time when the last rank ended.
  Time ended() const;
  const Traffic& traffic(int rank) const;
  /// The number of events created so far, a measure of the simulation's own cost.
  std::uint64_t events() const { return sequence_; }
  /// Sets the number of events after which Run throws TooLong.
  void set_most_events(std::uint64_t most) { most_events_ = most; }

  /// Advances the clock of the running rank. For bodies of Run.
  static void Work(Time duration);
  /// Advances the clock by the cost of reading `bytes` bytes of inputs of a reduction.
  static void Combine(std::size_t bytes);

 private:
  class Rank;
  class SimulatedLink;
  struct Host;
  struct Event;
  enum class Kind : std::uint8_t { kResume, kTurn, kDepart, kReachHost, kArrive, kRoom, kWoken };

  void Push(Time time, Kind kind, int rank, SimulatedLink* link = nullptr, std::size_t bytes = 0);
  void Handle(const Event& event);
  void Leave(SimulatedLink& link, Time ready, std::size_t bytes);
  void Notify(Rank& rank, int peer, bool room);
  void Resume(Rank& rank, Time time);
  void GiveUpCore(Host& host, Time time);
  void Dispatch(Host& host, Time time);
  void TakeTurn(Rank& rank);
  const Path& PathBetween(const Rank& one, const Rank& other) const;

  const Model model_;
  Stacks stacks_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<Host> hosts_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t sequence_ = 0;
  std::uint64_t most_events_ = ~std::uint64_t{0};
  Time now_ = 0;
  Rank* running_ = nullptr;
};

/// A sum whose cost is simulated and that touches no memory: of floats if the order matters, otherwise of
/// ints.
Reduction SimulatedSum(bool order_matters);

/// Thrown if a simulation exceeds the allowed number of events.
struct TooLong : std::exception {
  const char* what() const noexcept override { return "the simulation takes too many events"; }
};

}  // namespace warren::simulation
