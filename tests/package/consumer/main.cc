// A third-party program that runs its own tracker.
#include <tracker/server.h>

#include <boost/asio/io_context.hpp>
#include <cstdio>

int main() {
  boost::asio::io_context io;
  warren::tracker::ServerOptions options;
  options.bind_address = "127.0.0.1";
  options.port = 0;
  options.job.num_workers = 2;
  warren::tracker::Server server(io, options, {});
  std::printf("a tracker on port %d\n", server.port());
  return server.port() > 0 ? 0 : 1;
}
