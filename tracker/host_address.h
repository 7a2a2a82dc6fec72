// Which address of this machine the workers are told to connect to.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace warren::tracker {

/// `choice` as users give it to --host-ip:
///   "auto" or ""  the source address of the default route; 127.0.0.1 where there is none
///   "dns"         this machine's fully qualified name
///   anything else an IPv4 or IPv6 address, or a name that resolves; "[::1]" is "::1"
/// Throws std::runtime_error when a name does not resolve, and for an address with a port.
std::string ResolveHostIp(const std::string& choice);

/// Which address of this machine others reach it at, and which of them was asked for that.
struct Reached {
  std::string address;
  std::string by;  ///< empty: none of them; it is the address of the default route
};

/// The address this machine sends from towards the first of `hosts` (names or addresses) that is known here
/// and to which no loopback leads; 127.0.0.1 when loopbacks lead to all of them.
Reached AddressTowards(const std::vector<std::string>& hosts);

/// All addresses of a host, as a connection from it may show them; "[::1]" is "::1". Throws
/// std::runtime_error when its name does not resolve.
std::set<std::string> AddressesOf(const std::string& host);

/// All addresses of this machine's network interfaces.
std::set<std::string> AddressesOfThisMachine();

/// Whether `address` (an IPv4 or IPv6 literal) can be reached from its own machine only.
bool IsLoopback(const std::string& address);

/// The address the tracker binds so that workers told `host` reach it, and so that a worker on this machine
/// is seen under an address that others can reach too: `host` itself when it is an address of this machine,
/// else every address of the machine (empty string).
std::string BindAddressFor(const std::string& host);

}  // namespace warren::tracker
