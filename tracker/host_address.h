// The address of this machine that workers are told to connect to.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace warren::tracker {

/// Resolves `choice`, the value of --host-ip:
///   "auto" or ""  the source address of the default route; 127.0.0.1 if there is no route
///   "dns"         this machine's fully qualified name
///   anything else an IPv4 or IPv6 address, or a name that resolves; "[::1]" means "::1"
/// Throws std::runtime_error if a name does not resolve or `choice` includes a port.
std::string ResolveHostIp(const std::string& choice);

/// An address at which other machines reach this one, and the host for which it was determined.
struct Reached {
  std::string address;
  std::string by;  ///< empty for the default route or the loopback address
};

/// The source address of this machine towards the first of `hosts` (names or addresses) that resolves here
/// and is reached from an address other than a loopback or IPv6 link-local address. If there is no such host,
/// returns 127.0.0.1 if all hosts are reached from loopback addresses, otherwise the address of the default
/// route.
Reached AddressTowards(const std::vector<std::string>& hosts);

/// All addresses that `host` resolves to: the connections of its processes may come from any of them. "[::1]"
/// means "::1". Throws std::runtime_error if the name does not resolve.
std::set<std::string> AddressesOf(const std::string& host);

/// All addresses of this machine's network interfaces; empty if they cannot be determined.
std::set<std::string> AddressesOfThisMachine();

/// Whether `address`, an IPv4 or IPv6 literal, is a loopback address, which only its own machine can reach.
bool IsLoopback(const std::string& address);

/// The address for the tracker to bind: the first address of `host` that this machine can bind. Workers can
/// then reach the tracker at `host`, and workers on this machine connect from an address that other machines
/// can reach, too. Returns an empty string, which means all addresses, if this machine can bind none of them,
/// or if a name other than "localhost" resolves to a loopback address. Throws std::runtime_error if `host`
/// does not resolve.
std::string BindAddressFor(const std::string& host);

}  // namespace warren::tracker
