#include "submit/monitor/web_address.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string_view>

#include "wire/whole_number.h"

namespace warren::submit {
WebAddress ParseWebAddress(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  WebAddress address;
  std::string_view host;
  if (colon != std::string::npos) {
    host = std::string_view(text).substr(0, colon);
    const bool in_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
    if (in_brackets) host = host.substr(1, host.size() - 2);
    // In an IPv6 address without brackets, the colon before the port could be any of them.
    if (!in_brackets && host.find_first_of(":[]") != std::string_view::npos) host = {};
    address.host = host;
  }
  const auto port = wire::WholeNumber<std::uint16_t>(
      std::string_view(text).substr(colon == std::string::npos ? 0 : colon + 1));
  if (!port || address.host.empty()) {
    throw std::runtime_error(fmt::format(
        "'{}' is not [HOST:]PORT, such as 9100, 0.0.0.0:9100 or [::1]:9100; port 0 means any free one",
        text));
  }
  address.port = *port;
  return address;
}

std::string ToText(const WebAddress& address) {
  const bool is_ipv6 = address.host.find(':') != std::string::npos;
  return is_ipv6 ? fmt::format("[{}]:{}", address.host, address.port)
                 : fmt::format("{}:{}", address.host, address.port);
}

}  // namespace warren::submit
