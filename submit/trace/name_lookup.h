// Looks up a host name without delaying the end of the program. Asio's resolver would delay it: when the
// io_context is destroyed, it waits for the name server's answer, which can take a minute.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace warren::submit {

class NameLookup {
 public:
  using Endpoints = std::vector<boost::asio::ip::tcp::endpoint>;
  /// `error`: why there are no endpoints; empty after a success.
  using Done = std::function<void(const std::string& error, const Endpoints& endpoints)>;

  explicit NameLookup(boost::asio::io_context& io) : io_(io) {}
  ~NameLookup() { Cancel(); }
  NameLookup(const NameLookup&) = delete;
  NameLookup& operator=(const NameLookup&) = delete;

  /// Calls `done` from the io_context, unless Cancel is called or another lookup begins first. `port`: a
  /// number.
  void Start(const std::string& host, const std::string& port, Done done);
  void Cancel();

 private:
  struct Shared;

  boost::asio::io_context& io_;
  std::shared_ptr<Shared> shared_;  ///< shared with the lookup's thread; null before the first lookup
};

}  // namespace warren::submit
