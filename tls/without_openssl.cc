// For builds without OpenSSL's headers: no Context can be constructed, so no Session is ever made or used.
#include <cstdlib>
#include <stdexcept>

#include "tls/session.h"

namespace warren::tls {

struct Context::Impl {};
struct Session::Impl {};

Context::Context(std::string, const Secret&, std::uint64_t) {
  throw std::runtime_error(
      "TLS was requested, but this build does not include it: build Warren where OpenSSL 3 can be found (package libssl-dev of Debian and Ubuntu)");
}

Context Context::ForWebClients(const std::string&) {
  return {"", Secret()};
}

Session::Session(const Context&, Role, int) {}
Session::Session(const Context&, const std::string&, int) {}
Session::~Session() = default;
Session::Step Session::Handshake() {
  std::abort();
}
bool Session::established() const {
  std::abort();
}
bool Session::wants_to_write() const {
  std::abort();
}
ssize_t Session::Send(const void*, std::size_t, const void*, std::size_t) {
  std::abort();
}
ssize_t Session::Receive(void*, std::size_t) {
  std::abort();
}
bool Session::has_unread() const {
  std::abort();
}
std::size_t Session::bytes_read() const {
  std::abort();
}
const std::string& Session::error() const {
  std::abort();
}
bool Session::kernel_sends() const {
  std::abort();
}

}  // namespace warren::tls
