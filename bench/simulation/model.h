// The costs in the simulation: the parameters of LogGP (Alexandrov, Ionescu, Schauser, Scheiman: "LogGP:
// incorporating long messages into the LogP model", SPAA 1995), extended by the costs of TCP sockets: copies
// into and out of the kernel, calls that find nothing, buffers of bounded size, and ranks that share cores.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warren::simulation {

/// Picoseconds, as integers, so that every run gives the same results.
using Time = std::int64_t;
inline constexpr Time kMicrosecond = 1'000'000;

/// The costs of messages from one rank to another.
struct Path {
  Time send_overhead = 0;     ///< o of LogGP: the core's time for a send, without its copy
  Time receive_overhead = 0;  ///< o of LogGP: the core's time for a receive, without its copy
  double send_ps_per_byte = 0;
  double receive_ps_per_byte = 0;
  Time miss = 0;     ///< the core's time for a send that finds no free space, or a receive that finds no data
  Time latency = 0;  ///< L of LogGP
  Time gap = 0;      ///< g of LogGP: the minimum time between two messages that leave a host
  double gap_ps_per_byte = 0;  ///< G of LogGP: for a host's network interface, in each direction
  /// The number of bytes that the sockets of both ends can hold before the receiver reads.
  std::size_t buffer_bytes = std::size_t{1} << 20;
};

struct Model {
  Path inside;   ///< between ranks on one host
  Path between;  ///< between hosts, whose interfaces can all be busy at once (full bisection)
  int cores_of_host = 1;
  Time poll = 0;                       ///< time to determine which awaited links are ready
  Time turn = 0;                       ///< time to pass a core from one rank to the next
  Time wake_up = 0;                    ///< time from the arrival of data for a sleeping rank until it runs
  Time wake = 0;                       ///< core time that waking a rank costs a sender on the same host
  Time patience = 320 * kMicrosecond;  ///< how long a rank polls before it sleeps (waiting.h)
  double combine_ps_per_byte = 0;      ///< for each input of a reduction
  /// The size of the pieces of long messages, so that copying overlaps with transmission as in reality.
  std::size_t segment_bytes = std::size_t{64} << 10;
};

}  // namespace warren::simulation
