// Parses requests to the job's web server, and checks whether they are allowed. Does no I/O.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "wire/job_token.h"

namespace warren::submit {

/// The target of a request: "/logs?worker=3".
struct WebTarget {
  std::string path;
  std::map<std::string, std::string, std::less<>> query;  ///< decoded
  std::string_view Value(std::string_view name) const;    ///< empty if missing
};
WebTarget ParseTarget(std::string_view target);

/// The token that opens the job's page with all its actions. Derived one-way from the job's token, so that a
/// leaked URL gives access to the page, but not to the job.
std::string PageToken(const wire::JobToken& token);
/// The token that opens the page for those who may only see the job.
std::string ViewToken(const wire::JobToken& token);

/// The part of a path after the token: "/logs" for "/in/TOKEN/logs". Such paths are for frames on a page of
/// another host, such as a notebook's: browsers send no cookies from there. std::nullopt for another path or
/// token.
std::optional<std::string> PathInside(std::string_view path, std::string_view token);

/// The value of a cookie in a Cookie header; empty if missing.
std::string_view CookieValue(std::string_view header, std::string_view name);
/// The name of the page's cookie. Contains the port, because browsers send cookies of one port to all ports
/// of a host.
std::string CookieName(std::uint16_t port);

/// Whether a Host header means this machine's loopback address. Other names come from pages whose host name
/// was made to resolve to this machine, so that the browser attributes our answers to their server (DNS
/// rebinding).
bool NamesLoopback(std::string_view host);

/// Whether a Sec-Fetch-Site header says that the request comes from a page of another origin, which may be
/// another port of this host: browsers send our cookie with such requests, too. Old browsers and other
/// programs send no such header.
bool IsOfAnotherOrigin(std::string_view fetch_site);

/// Whether a request that changes something comes from this server's own page or from a program that is not a
/// browser, judging by the headers Sec-Fetch-Site, Origin and Host. Browsers send at least one of the first
/// two with a POST.
bool MayChange(std::string_view fetch_site, std::string_view origin, std::string_view host);

}  // namespace warren::submit
