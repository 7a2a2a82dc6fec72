// A rank that does what a conductor tells it, one sample at a time, so that worlds of several peers can stand
// beside each other while only one of them works (bench/comparison/conducted.py is the conductor).
#pragma once

#include <string>

#include "bench/allreduce/world.h"

namespace warren::bench {

/// Connects to the Unix socket at `path`, says its rank, and then answers each line:
///
///     sample <case> <seconds of a block>    <seconds of one operation> <operations in the block>
///     forget                                ok: the buffers of the last case are given back
///
/// until the conductor closes the socket. Meanwhile it sleeps. Throws what Measurement throws, and
/// std::system_error.
void ObeyConductor(World& world, const std::string& path);

}  // namespace warren::bench
