// What the kernel knows about the state of a TCP connection.
#pragma once

namespace warren::tcp {

/// Returns how many retransmissions or keepalive probes in a row have gone unanswered; 0 if unknown.
int Unanswered(int fd);
/// Returns whether the peer's kernel has acknowledged everything sent so far and has no room for the data
/// that is still queued here. False if unknown.
bool IsFull(int fd);

}  // namespace warren::tcp
