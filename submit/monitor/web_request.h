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
  std::string_view Value(std::string_view name) const;    ///< a parameter's value; empty if missing
};
WebTarget ParseTarget(std::string_view target);

/// The token that opens the job's page with all its actions. It is derived one-way from the job's token, so
/// that a leaked URL gives access to the page, but not to the job.
std::string PageToken(const wire::JobToken& token);
/// The token that opens the page without its actions and without the user's other jobs.
std::string ViewToken(const wire::JobToken& token);

/// Returns the part of a path after the token: "/logs" for "/in/TOKEN/logs"; nullopt if the path has another
/// form or token. Such paths are for frames in pages of another host, such as a notebook's: browsers do not
/// send cookies from there.
std::optional<std::string> PathInside(std::string_view path, std::string_view token);

/// The value of a cookie in a Cookie header; empty if missing.
std::string_view CookieValue(std::string_view header, std::string_view name);
/// The name of the page's cookie. It contains the port, because browsers send the cookies of a host to all of
/// its ports.
std::string CookieName(std::uint16_t port);

/// Whether a Host header names this machine's loopback address. Another name may come from an attacker's page
/// whose host name was made to resolve to this machine, so that the browser takes our answers for those of
/// the page's server (DNS rebinding).
bool NamesLoopback(std::string_view host);

/// Whether, according to its header Sec-Fetch-Site, a request comes from a page of another origin. Such a
/// page may be on another port of this host, and browsers then send our cookie, too. False for an empty
/// header, because old browsers and other programs send none.
bool IsOfAnotherOrigin(std::string_view fetch_site);

/// Whether a request that changes something comes from this server's own page or from a program that is not a
/// browser, judging by the headers Sec-Fetch-Site, Origin and Host. With a POST, browsers send at least one
/// of the first two.
bool MayChange(std::string_view fetch_site, std::string_view origin, std::string_view host);

}  // namespace warren::submit
