// Where the processes of a job find its tracker or its scheduler.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <string>

#include "submit/options.h"
#include "tracker/environment.h"

namespace warren::submit {

/// A free port at `host` for the scheduler, which binds it itself a moment later. Another job that looks at
/// the same time would find the same first free port, so each begins somewhere else in the range. Throws
/// std::runtime_error when none is free.
std::uint16_t FindSchedulerPort(boost::asio::io_context& io, const Options& options, const std::string& host);

/// A port for rank 0 of torch.distributed, which binds it itself on its own host: below those that the kernel
/// gives to anybody, another for each job, and free on this machine a moment ago.
std::uint16_t ChooseMasterPort(boost::asio::io_context& io);

/// The tracker's address, or the scheduler's in a job with servers, which knows no token.
tracker::JobAddress AddressOf(const Options& options, const std::string& host, std::uint16_t port,
                              const std::string& token);

}  // namespace warren::submit
