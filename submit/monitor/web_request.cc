#include "submit/monitor/web_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <charconv>

namespace warren::submit {
namespace {

std::string Decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned char byte = 0;
    const char* digits = text.data() + i + 1;
    if (text[i] == '+') {
      decoded += ' ';
    } else if (text[i] == '%' && i + 2 < text.size() &&
               std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      decoded += static_cast<char>(byte);
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

/// Calls take(part) for each part between separators, including empty parts.
template <typename Take>
void ForEachPart(std::string_view text, char separator, const Take& take) {
  for (std::size_t end = 0; end != std::string_view::npos;) {
    end = text.find(separator);
    take(text.substr(0, end));
    if (end != std::string_view::npos) text.remove_prefix(end + 1);
  }
}

}  // namespace

std::string_view WebTarget::Value(std::string_view name) const {
  const auto found = query.find(name);
  return found == query.end() ? std::string_view() : std::string_view(found->second);
}

WebTarget ParseTarget(std::string_view target) {
  const std::size_t mark = target.find('?');
  WebTarget parsed{std::string(target.substr(0, mark)), {}};
  if (mark == std::string_view::npos) return parsed;
  ForEachPart(target.substr(mark + 1), '&', [&](std::string_view part) {
    const std::size_t equals = part.find('=');
    const bool has_value = equals != std::string_view::npos;
    parsed.query.emplace(Decoded(part.substr(0, equals)),
                         has_value ? Decoded(part.substr(equals + 1)) : std::string());
  });
  return parsed;
}

std::string PageToken(const wire::JobToken& token) {
  return wire::ToHex(wire::BytesOf(token.Derive("page")).substr(0, 16));
}

std::string ViewToken(const wire::JobToken& token) {
  return wire::ToHex(wire::BytesOf(token.Derive("view")).substr(0, 16));
}

std::optional<std::string> PathInside(std::string_view path, std::string_view token) {
  constexpr std::string_view kBegin = "/in/";
  if (!path.starts_with(kBegin)) return std::nullopt;
  path.remove_prefix(kBegin.size());
  const std::size_t end = path.find('/');
  if (end == std::string_view::npos || !wire::Same(path.substr(0, end), token)) return std::nullopt;
  return std::string(path.substr(end));
}

std::string_view CookieValue(std::string_view header, std::string_view name) {
  std::string_view value;
  ForEachPart(header, ';', [&](std::string_view part) {
    part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
    if (part.size() > name.size() && part.substr(0, name.size()) == name && part[name.size()] == '=') {
      value = part.substr(name.size() + 1);
    }
  });
  return value;
}

std::string CookieName(std::uint16_t port) {
  return fmt::format("warren-{}", port);
}

bool NamesLoopback(std::string_view host) {
  const bool in_brackets = host.starts_with('[');
  if (in_brackets) host.remove_prefix(1);
  host = host.substr(0, host.find(in_brackets ? ']' : ':'));
  if (host == "localhost") return true;
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(std::string(host), error);
  return !error && address.is_loopback();
}

bool IsOfAnotherOrigin(std::string_view fetch_site) {
  // "none" means that the user typed the address or used a bookmark.
  return !fetch_site.empty() && fetch_site != "same-origin" && fetch_site != "none";
}

bool MayChange(std::string_view fetch_site, std::string_view origin, std::string_view host) {
  if (!fetch_site.empty()) return fetch_site == "same-origin";
  if (origin.empty()) return true;
  const std::size_t slashes = origin.find("://");
  return slashes != std::string_view::npos && origin.substr(slashes + 3) == host;
}

}  // namespace warren::submit
