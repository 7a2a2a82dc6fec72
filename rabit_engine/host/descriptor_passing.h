// Passing descriptors between processes of one host over Unix sockets in the abstract namespace: their names
// exist only in the kernel, within one network namespace. Linux only.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rabit_engine/base/descriptor.h"
#include "rabit_engine/host/host_segment.h"

namespace warren {

/// The time limit for one step of passing descriptors between processes of one host that are all alive.
inline constexpr int kPassingTimeoutMs = 10'000;

/// Returns a socket whose messages are packets: each arrives whole, with its descriptors. Returns an empty
/// descriptor and sets errno on failure.
CloseOnForkDescriptor OpenLocalSocket();
/// Gives the socket a name. Returns false and sets errno on failure.
bool BindLocally(int socket, const std::string& name);
/// Connects to the socket of that name. Returns false on failure, or if the process that listens there is
/// another user's.
bool ConnectLocally(int socket, const std::string& name);
/// Returns the next connection. On failure, or if the connection is another user's (EAGAIN), returns an empty
/// descriptor and sets errno.
CloseOnForkDescriptor AcceptLocally(int listener);

/// Sends descriptors, which the sender keeps, with what PassedDescriptors has. Returns false if sending takes
/// too long or the peer has ended.
bool SendDescriptors(int socket, int rank, std::span<const int> descriptors, const HostCores& cores = {});

/// What SendDescriptors sent.
struct PassedDescriptors {
  int rank = -1;    ///< the sender's rank
  HostCores cores;  ///< from the leader: see HostSegment's constructor
  std::vector<CloseOnForkDescriptor> descriptors;
};
/// Returns nullopt if nothing arrives in time, if the sender uses another layout of the segment, or if this
/// process cannot open that many descriptors.
std::optional<PassedDescriptors> ReceiveDescriptors(int socket);

}  // namespace warren
