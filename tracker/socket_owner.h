// Which user has the other end of a TCP connection within this machine.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <optional>
#include <string_view>

namespace warren::tracker {

/// The address as other workers can use it: IPv4 where it arrives on an IPv6 socket as a mapped one.
boost::asio::ip::address PlainAddress(const boost::asio::ip::address& address);

/// The user id of the process that opened the peer's socket; `peer` and `own` are the two ends. std::nullopt
/// for a peer on another machine or in another network namespace, for a socket that no process has any more,
/// and where the kernel cannot be asked. Linux only: by a query for this socket, else by the tables
/// /proc/net/tcp and tcp6.
std::optional<unsigned> OwnerOfPeer(const boost::asio::ip::tcp::endpoint& peer,
                                    const boost::asio::ip::tcp::endpoint& own);

/// The same in the text of one of the tables.
std::optional<unsigned> OwnerInTable(std::string_view table, const boost::asio::ip::tcp::endpoint& peer,
                                     const boost::asio::ip::tcp::endpoint& own);

}  // namespace warren::tracker
