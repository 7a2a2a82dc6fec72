// The address at which a job's metrics or page are served: HOST:PORT or PORT.
#pragma once

#include <cstdint>
#include <string>

namespace warren::submit {

struct WebAddress {
  std::string host = "127.0.0.1";  ///< name or address, IPv6 without brackets
  std::uint16_t port = 0;          ///< 0: any free one

  friend bool operator==(const WebAddress& a, const WebAddress& b) {
    return a.host == b.host && a.port == b.port;
  }
};

/// Parses "9100", "0.0.0.0:9100" or "[::1]:0". Throws a std::runtime_error that shows the expected form.
WebAddress ParseWebAddress(const std::string& text);

/// Formats the address as in URLs: "127.0.0.1:9100", "[::1]:9100".
std::string ToText(const WebAddress& address);

}  // namespace warren::submit
