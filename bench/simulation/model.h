// What things cost in the simulation: the parameters of LogGP (Alexandrov, Ionescu, Schauser, Scheiman:
// "LogGP: incorporating long messages into the LogP model", SPAA 1995), with what a TCP socket adds to them:
// copies into and out of the kernel, calls that find nothing, buffers of a bounded size, and ranks that share
// cores.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warren::simulation {

/// Picoseconds: whole numbers, so that every run gives the same figures.
using Time = std::int64_t;
inline constexpr Time kMicrosecond = 1'000'000;

/// The way from one rank to another.
struct Path {
  Time send_overhead = 0;     ///< o of LogGP: the core's time for a send, beside its copy
  Time receive_overhead = 0;  ///< o of LogGP: the core's time for a receive, beside its copy
  double send_ps_per_byte = 0;
  double receive_ps_per_byte = 0;
  Time miss = 0;               ///< a send that finds no room, or a receive that finds nothing
  Time latency = 0;            ///< L
  Time gap = 0;                ///< g: the least time between two messages that leave a host
  double gap_ps_per_byte = 0;  ///< G: of a host's network interface, in each direction
  /// What the sockets of both ends hold before the receiver reads.
  std::size_t buffer_bytes = std::size_t{1} << 20;
};

struct Model {
  Path inside;   ///< between ranks of one host
  Path between;  ///< between hosts: all of their interfaces can be busy at once (full bisection)
  int cores_of_host = 1;
  Time poll = 0;     ///< to find out which of the awaited links have something
  Time turn = 0;     ///< one rank gives its core to the next
  Time wake_up = 0;  ///< from the arrival of what a sleeping rank waits for until it goes on
  Time wake = 0;     ///< what that costs the core of a sender on the same host
  Time patience = 320 * kMicrosecond;  ///< how long a rank looks again and again before it sleeps (waiting.h)
  double combine_ps_per_byte = 0;      ///< of each input of a reduction
  /// Long messages travel in pieces of this size, so that copies and the wire overlap as they do in reality.
  std::size_t segment_bytes = std::size_t{64} << 10;
};

}  // namespace warren::simulation
