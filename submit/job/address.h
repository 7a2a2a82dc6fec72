// The addresses at which the processes of a job reach its tracker or scheduler.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <string>

#include "submit/options/options.h"
#include "tracker/environment.h"

namespace warren::submit {

/// A free port on `host` for the scheduler, which binds it shortly afterwards. Each dmlc-submit starts the
/// search at a different port of the range, since jobs started at the same time would otherwise find the same
/// port. Throws std::runtime_error if no port is free.
std::uint16_t FindSchedulerPort(boost::asio::io_context& io, const Options& options, const std::string& host);

/// A port for rank 0 of torch.distributed, which binds it on its own host. It lies below the kernel's
/// ephemeral ports and is random, so that jobs use different ports. Ports that are in use on this machine are
/// avoided if possible.
std::uint16_t ChooseMasterPort(boost::asio::io_context& io);

/// The address of the tracker or, in a job with servers, of the scheduler, which uses no token.
tracker::JobAddress AddressOf(const Options& options, const std::string& host, std::uint16_t port,
                              const std::string& token);

}  // namespace warren::submit
