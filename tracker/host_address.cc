#include "tracker/host_address.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/host_name.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/udp.hpp>
#include <stdexcept>

namespace warren::tracker {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using asio::ip::udp;

/// The source address of this machine towards `target`; unspecified if there is no route. Connecting a
/// datagram socket only queries the routing table; nothing is sent.
asio::ip::address SourceAddressTowards(const asio::ip::address& target) {
  asio::io_context io;
  udp::socket socket(io);
  boost::system::error_code error;
  socket.open(target.is_v6() ? udp::v6() : udp::v4(), error);
  if (!error) socket.connect({target, 9}, error);
  const udp::endpoint local = error ? udp::endpoint() : socket.local_endpoint(error);
  return error ? asio::ip::address() : local.address();
}

std::string RouteTowards(const char* target) {
  const asio::ip::address address = SourceAddressTowards(asio::ip::make_address(target));
  return address.is_unspecified() || address.is_loopback() ? std::string() : address.to_string();
}

std::string DefaultRouteAddress() {
  // Addresses reserved for documentation (RFC 5737, RFC 3849): routed like any other, but unused.
  std::string address = RouteTowards("192.0.2.1");
  if (address.empty()) address = RouteTowards("2001:db8::1");
  return address.empty() ? "127.0.0.1" : address;
}

tcp::resolver::results_type Resolve(asio::io_context& io, const std::string& host) {
  boost::system::error_code error;
  auto results = tcp::resolver(io).resolve(host, "", error);
  if (error) {
    throw std::runtime_error(fmt::format(
        "cannot resolve the tracker's host \"{}\": {}; give an address of this machine with --host-ip", host,
        error.message()));
  }
  return results;
}

bool IsAddress(const std::string& text) {
  boost::system::error_code error;
  asio::ip::make_address(text, error);
  return !error;
}

/// Strips the brackets that IPv6 addresses have before a port: "[::1]".
std::string WithoutBrackets(const std::string& host) {
  if (!host.starts_with('[') || !host.ends_with(']')) return host;
  std::string address = host.substr(1, host.size() - 2);
  return IsAddress(address) ? address : host;
}

/// Whether the host is followed by a port: "[::1]:9091", "10.0.0.1:9091", "name:9091".
bool HasPort(const std::string& host) {
  const std::size_t colon = host.rfind(':');
  const bool is_number = colon != std::string::npos && colon + 1 < host.size() &&
                         std::all_of(host.begin() + static_cast<std::ptrdiff_t>(colon) + 1, host.end(),
                                     [](char c) { return c >= '0' && c <= '9'; });
  return is_number && !IsAddress(host) && (host.find(':') == colon || host[colon - 1] == ']');
}

}  // namespace

std::string ResolveHostIp(const std::string& choice) {
  if (choice.empty() || choice == "auto") return DefaultRouteAddress();
  asio::io_context io;
  if (choice != "dns") {
    if (HasPort(choice)) {
      throw std::runtime_error(fmt::format(
          "--host-ip \"{}\" has a port; give the address alone, and the port with --port", choice));
    }
    std::string host = WithoutBrackets(choice);
    Resolve(io, host);
    return host;
  }
  boost::system::error_code error;
  const std::string name = asio::ip::host_name(error);
  const auto found = tcp::resolver(io).resolve(name, "", tcp::resolver::canonical_name, error);
  if (error) {
    throw std::runtime_error(
        fmt::format("cannot find the full name of this machine (\"{}\"): {}; give its address with --host-ip",
                    name, error.message()));
  }
  return found.begin()->host_name();
}

Reached AddressTowards(const std::vector<std::string>& hosts) {
  asio::io_context io;
  bool all_here = !hosts.empty();
  for (const std::string& host : hosts) {
    boost::system::error_code error;
    const auto found = tcp::resolver(io).resolve(host, "", error);
    if (error) all_here = false;
    for (const auto& entry : found) {
      const asio::ip::address source = SourceAddressTowards(entry.endpoint().address());
      if (source.is_loopback()) continue;
      all_here = false;
      // An IPv6 link-local address is useless to other machines without the name of their interface.
      const bool usable = !source.is_unspecified() && !(source.is_v6() && source.to_v6().is_link_local());
      if (usable) return {source.to_string(), host};
    }
  }
  return {all_here ? "127.0.0.1" : DefaultRouteAddress(), ""};
}

std::set<std::string> AddressesOf(const std::string& host) {
  asio::io_context io;
  boost::system::error_code error;
  const auto found = tcp::resolver(io).resolve(WithoutBrackets(host), "", error);
  if (error)
    throw std::runtime_error(fmt::format("cannot resolve the host \"{}\": {}", host, error.message()));
  std::set<std::string> addresses;
  for (const auto& entry : found) addresses.insert(entry.endpoint().address().to_string());
  return addresses;
}

std::set<std::string> AddressesOfThisMachine() {
  std::set<std::string> addresses;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return addresses;
  for (const ifaddrs* entry = all; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    if (entry->ifa_addr->sa_family == AF_INET) {
      const auto* v4 = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr);
      addresses.insert(asio::ip::address_v4(ntohl(v4->sin_addr.s_addr)).to_string());
    } else if (entry->ifa_addr->sa_family == AF_INET6) {
      const auto* v6 = reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr);
      asio::ip::address_v6::bytes_type bytes;
      std::copy_n(v6->sin6_addr.s6_addr, bytes.size(), bytes.begin());
      addresses.insert(asio::ip::address_v6(bytes, v6->sin6_scope_id).to_string());
    }
  }
  freeifaddrs(all);
  return addresses;
}

bool IsLoopback(const std::string& address) {
  boost::system::error_code error;
  const asio::ip::address parsed = asio::ip::make_address(address, error);
  return !error && parsed.is_loopback();
}

std::string BindAddressFor(const std::string& host) {
  asio::io_context io;
  const bool is_name = !IsAddress(host);
  for (const auto& entry : Resolve(io, host)) {
    // A machine's own name often resolves to 127.0.1.1 on that machine and to its real address elsewhere.
    if (is_name && entry.endpoint().address().is_loopback() && host != "localhost") return {};
    tcp::acceptor probe(io);
    boost::system::error_code error;
    probe.open(entry.endpoint().protocol(), error);
    if (!error) probe.bind(tcp::endpoint(entry.endpoint().address(), 0), error);
    if (!error) return entry.endpoint().address().to_string();
  }
  return {};
}

}  // namespace warren::tracker
