// Which address of this machine the workers are told to connect to.
#pragma once

#include <string>

namespace warren::tracker {

/// `choice` as users give it to --host-ip:
///   "auto" or ""  the source address of the default route; 127.0.0.1 where there is none
///   "dns"         this machine's fully qualified name
///   anything else taken as it is: an IPv4 or IPv6 address, or a name that resolves
/// Throws std::runtime_error when a name does not resolve.
std::string ResolveHostIp(const std::string& choice);

/// The address the tracker binds so that workers told `host` reach it, and so that a worker on this machine
/// is seen under an address that others can reach too: `host` itself when it is an address of this machine,
/// else every address of the machine (empty string).
std::string BindAddressFor(const std::string& host);

}  // namespace warren::tracker
