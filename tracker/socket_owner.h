// Finds the user who owns the other end of a TCP connection within this machine.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <optional>
#include <string_view>

namespace warren::tracker {

/// The address in the form that other workers can use: an IPv4 address mapped to IPv6 becomes plain IPv4.
boost::asio::ip::address PlainAddress(const boost::asio::ip::address& address);

/// The id of the user whose process opened the peer's socket; `peer` and `own` are the two ends of the
/// connection. std::nullopt if the peer is on another machine or in another network namespace, no process
/// holds its socket any longer, or the kernel cannot be queried. Linux only: queries the kernel for this
/// socket, or else reads the tables /proc/net/tcp and tcp6.
std::optional<unsigned> OwnerOfPeer(const boost::asio::ip::tcp::endpoint& peer,
                                    const boost::asio::ip::tcp::endpoint& own);

/// Like OwnerOfPeer, but searches `table`, the text of /proc/net/tcp or tcp6.
std::optional<unsigned> OwnerInTable(std::string_view table, const boost::asio::ip::tcp::endpoint& peer,
                                     const boost::asio::ip::tcp::endpoint& own);

}  // namespace warren::tracker
