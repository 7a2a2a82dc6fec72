// The state of a TCP connection, as the kernel reports it.
#pragma once

#include "rabit_engine/transport/tcp/packing_policy.h"

namespace warren::tcp {

/// Returns the number of consecutive unanswered retransmissions or keepalive probes; 0 if unknown.
int Unanswered(int fd);
/// Returns whether the peer's kernel has acknowledged everything sent so far and has no space for the data
/// that is still queued here. False if unknown.
bool IsFull(int fd);

/// Returns the sending progress of this end of the connection; zeros if unknown.
SendProgress ProgressOf(int fd);

}  // namespace warren::tcp
