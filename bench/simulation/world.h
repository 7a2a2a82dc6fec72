// A world of simulated ranks: each runs the engine's own code over a Transport whose links cost what the
// model says, in virtual time. No bytes are moved but the tags that ranks compare: all ranks may use one
// buffer.
//
// A discrete-event simulation. A rank's clock runs ahead of the others' until it does something that others
// see or that depends on them; then everything that comes before is simulated first. Equal times are taken in
// the order in which they came up, so every run is the same.
//
// Ranks that have a core each wait as the engine does (transport/waiting.h): they look for `patience`, then
// sleep. Where a host has more ranks than cores those that wait take turns on the cores, and a turn in vain
// costs as much as another. A rank that works keeps its core until it waits.
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

/// What one rank has done.
struct Traffic {
  std::uint64_t messages = 0;  ///< sends that moved something
  std::uint64_t bytes = 0;     ///< tags included
  std::uint64_t bytes_between_hosts = 0;
};

class World {
 public:
  /// `ranks_of_host` consecutive ranks on each host; the last may have fewer.
  World(const Model& model, int ranks, int ranks_of_host = 1);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Runs `body` on every rank, all from time 0 on; returns when the last has ended. Throws what a body
  /// throws, and std::logic_error when all wait for each other. Once.
  void Run(const std::function<void(Transport& transport)>& body);

  int size() const { return static_cast<int>(ranks_.size()); }
  /// When a rank ended.
  Time ended(int rank) const;
  /// When the last one did.
  Time ended() const;
  const Traffic& traffic(int rank) const;
  /// Events so far: what the simulation itself costs.
  std::uint64_t events() const { return sequence_; }
  /// Run throws TooLong after so many.
  void set_most_events(std::uint64_t most) { most_events_ = most; }

  /// Of the rank that runs: so much time of its core goes by. For bodies of Run.
  static void Work(Time duration);
  /// The same for reading so many bytes of inputs of a reduction.
  static void Combine(std::size_t bytes);
  static Time Now();

 private:
  class Rank;
  class SimulatedLink;
  struct Host;
  struct Event;
  enum class Kind : std::uint8_t { kResume, kTurn, kDepart, kReachHost, kArrive, kRoom, kWoken };

  void Push(Time time, Kind kind, int rank, SimulatedLink* link = nullptr, std::size_t bytes = 0);
  void Handle(const Event& event);
  void Leave(SimulatedLink& link, Time ready, std::size_t bytes);
  void Arrived(SimulatedLink& link, std::size_t bytes);
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

/// A reduction whose cost is simulated and that touches no memory: of floats, where the order matters, or of
/// ints.
Reduction SimulatedSum(bool order_matters);

/// More events than were allowed.
struct TooLong : std::exception {
  const char* what() const noexcept override { return "the simulation takes too many events"; }
};

}  // namespace warren::simulation
