// What the kernel says of the state of a TCP connection.
#pragma once

namespace warren::tcp {

/// How many retransmissions, or questions whether the host is there, were left unanswered in a row. 0 where
/// the kernel does not say.
int Unanswered(int fd);
/// Whether the peer's kernel has acknowledged all that went out, and has no room for what did not. False
/// where the kernel does not say.
bool IsFull(int fd);

}  // namespace warren::tcp
