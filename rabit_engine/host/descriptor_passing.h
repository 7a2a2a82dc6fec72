// Passes file descriptors between processes on one host over Unix sockets in the abstract namespace. The
// sockets' names exist only in the kernel, within one network namespace. Linux only.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rabit_engine/base/descriptor.h"
#include "rabit_engine/host/host_segment.h"

namespace warren {

/// The time limit of each step: connecting, waiting for a connection, sending a message or receiving one.
inline constexpr int kPassingTimeoutMs = 10'000;

/// Opens a SOCK_SEQPACKET socket: each message arrives whole, with its descriptors. Returns an empty
/// descriptor and sets errno on failure.
CloseOnForkDescriptor OpenLocalSocket();
/// Binds the socket to a name. Returns false and sets errno on failure.
bool BindLocally(int socket, const std::string& name);
/// Connects to the socket of that name. Returns false on failure, or if the listening process belongs to
/// another user.
bool ConnectLocally(int socket, const std::string& name);
/// Accepts the next connection. On failure, or if the peer's process belongs to another user (EAGAIN),
/// returns an empty descriptor and sets errno.
CloseOnForkDescriptor AcceptLocally(int listener);

/// Sends descriptors, which stay open in this process, together with `rank` and `cores`. Returns false on
/// failure, for example if sending takes too long or the peer has ended.
bool SendDescriptors(int socket, int rank, std::span<const int> descriptors, const HostCores& cores = {});

/// The data sent by one call of SendDescriptors.
struct PassedDescriptors {
  int rank = -1;    ///< the sender's rank
  HostCores cores;  ///< only those sent by the leader are used
  std::vector<CloseOnForkDescriptor> descriptors;
};
/// Receives the data of one call of SendDescriptors. Returns nullopt if it does not arrive in time, the
/// connection fails, the sender uses another layout of the segment, or this process cannot open that many
/// descriptors.
std::optional<PassedDescriptors> ReceiveDescriptors(int socket);

}  // namespace warren
