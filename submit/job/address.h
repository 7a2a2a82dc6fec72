// The addresses at which the processes of a job reach its tracker or scheduler.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <string>

#include "submit/options/options.h"
#include "tracker/environment.h"

namespace warren::submit {

/// Finds a free port on `host` for the scheduler, which binds the port shortly afterwards. Jobs that are
/// started at the same time would all find the first free port of the range, so each dmlc-submit begins the
/// search at a port that depends on its process ID. Throws std::runtime_error if no port is free.
std::uint16_t FindSchedulerPort(boost::asio::io_context& io, const Options& options, const std::string& host);

/// Chooses a port for rank 0 of torch.distributed, which binds the port on its own host. The port is random,
/// so that jobs use different ports, and lies below the kernel's default range of ephemeral ports. Ports that
/// are in use on this machine are avoided if possible.
std::uint16_t ChooseMasterPort(boost::asio::io_context& io);

/// The address of the tracker or, in a job with servers, of the scheduler, which uses no token.
tracker::JobAddress AddressOf(const Options& options, const std::string& host, std::uint16_t port,
                              const std::string& token);

}  // namespace warren::submit
