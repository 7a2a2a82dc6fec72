// Finds the user that owns the other end of a TCP connection within this machine.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <optional>
#include <string_view>

namespace warren::tracker {

/// The address in the form other workers can use: an IPv4 address mapped to IPv6 becomes plain IPv4.
boost::asio::ip::address PlainAddress(const boost::asio::ip::address& address);

/// The user id of the process that opened the peer's socket; `peer` and `own` are the two ends. std::nullopt
/// for a peer on another machine or in another network namespace, for a socket that no process holds now, and
/// if the kernel cannot be queried. Linux only: queries the kernel for this socket, or else reads the tables
/// /proc/net/tcp and tcp6.
std::optional<unsigned> OwnerOfPeer(const boost::asio::ip::tcp::endpoint& peer,
                                    const boost::asio::ip::tcp::endpoint& own);

/// Like OwnerOfPeer, but searches `table`, the text of /proc/net/tcp or tcp6.
std::optional<unsigned> OwnerInTable(std::string_view table, const boost::asio::ip::tcp::endpoint& peer,
                                     const boost::asio::ip::tcp::endpoint& own);

}  // namespace warren::tracker
