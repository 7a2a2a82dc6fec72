// What a request to the job's web server asks for, and whether whoever asks may have it. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "wire/job_token.h"

namespace warren::submit {

/// What stands behind the method: "/logs?worker=3".
struct WebTarget {
  std::string path;
  std::map<std::string, std::string, std::less<>> query;  ///< decoded
  std::string_view Value(std::string_view name) const;    ///< empty: there is none
};
WebTarget ParseTarget(std::string_view target);

/// Opens the job's page. Made from the job's token in one direction, so that a URL that somebody sees gives
/// the page away and not the job.
std::string PageToken(const wire::JobToken& token);

/// Of a Cookie header; empty: there is none of that name.
std::string_view CookieValue(std::string_view header, std::string_view name);
/// Browsers send the cookies of one port to all others of a host.
std::string CookieName(std::uint16_t port);

/// Whether a Host header means this machine's loopback. Others come from pages whose own name was made to
/// lead here, so that the browser takes what we serve for theirs (DNS rebinding).
bool NamesLoopback(std::string_view host);

/// Whether a Sec-Fetch-Site header says that a page of another origin asks, also one at another port of this
/// host, to which browsers give our cookie. Old browsers and other programs send no such header.
bool IsOfAnotherOrigin(std::string_view fetch_site);

}  // namespace warren::submit
