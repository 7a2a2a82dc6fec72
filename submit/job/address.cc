#include "submit/job/address.h"

#include <fmt/format.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <optional>
#include <random>
#include <stdexcept>

#include "tracker/host_address.h"

namespace warren::submit {
namespace {

namespace asio = boost::asio;

/// Binds `port` briefly, or any free port if `port` is 0. Returns the port; nullopt if it cannot be bound,
/// usually because it is in use.
std::optional<std::uint16_t> FreePort(asio::io_context& io, const asio::ip::address& address,
                                      std::uint16_t port) {
  boost::system::error_code error;
  asio::ip::tcp::acceptor acceptor(io);
  const asio::ip::tcp::endpoint endpoint(address, port);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(1, error);  // needed to detect a listener that also set reuse_address
  if (error) return std::nullopt;
  return acceptor.local_endpoint().port();
}

}  // namespace

std::uint16_t FindSchedulerPort(asio::io_context& io, const Options& options, const std::string& host) {
  const std::string bind_address = tracker::BindAddressFor(host);
  const asio::ip::address address = bind_address.empty() ? asio::ip::address(asio::ip::address_v4::any())
                                                         : asio::ip::make_address(bind_address);
  const int count = options.port == 0 ? 1 : options.port_end - options.port + 1;
  const int offset = getpid() % count;
  for (int i = 0; i < count; ++i) {
    const int port = options.port + (offset + i) % count;
    if (const auto found = FreePort(io, address, static_cast<std::uint16_t>(port))) return *found;
  }
  throw std::runtime_error(fmt::format("no port from {} to {} is free on {} for the scheduler (see --port)",
                                       options.port, options.port_end, host));
}

std::uint16_t ChooseMasterPort(asio::io_context& io) {
  constexpr int kFirst = 20'000, kCount = 12'000, kTries = 100;
  std::random_device random;
  std::uint16_t port = 0;
  for (int i = 0; i < kTries; ++i) {
    port = static_cast<std::uint16_t>(kFirst + random() % kCount);
    if (FreePort(io, asio::ip::address_v6::any(), port) || FreePort(io, asio::ip::address_v4::any(), port))
      break;
  }
  return port;
}

tracker::JobAddress AddressOf(const Options& options, const std::string& host, std::uint16_t port,
                              const std::string& token) {
  tracker::JobAddress address;
  address.num_workers = options.num_workers;
  address.num_servers = options.num_servers;
  if (options.num_servers == 0) address.token = token;
  address.tls = options.tls;
  address.min_workers = options.min_workers;
  if (options.num_servers > 0) {
    address.ps_root_host = host;
    address.ps_root_port = port;
  } else if (!options.no_tracker) {
    address.tracker_host = host;
    address.tracker_port = port;
  }
  return address;
}

}  // namespace warren::submit
