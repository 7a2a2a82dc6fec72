// A rank that takes samples on a conductor's command, one at a time, so that the worlds of several peers can
// run at the same time while only one of them works (bench/comparison/conducted.py is the conductor).
#pragma once

#include <string>

#include "bench/allreduce/world.h"

namespace warren::bench {

/// Connects to the Unix socket at `path`, sends the rank, and then answers each command (left) with a line
/// (right):
///
///     sample <case> <seconds of a block>    <seconds of one operation>
///     forget                                ok: the buffers of the last case are freed
///
/// until the conductor closes the socket. Sleeps between commands. Throws the errors of Measurement,
/// std::invalid_argument for a malformed command or a path that is too long, and std::system_error.
void ObeyConductor(World& world, const std::string& path);

}  // namespace warren::bench
