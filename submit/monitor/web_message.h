// The requests to the job's web server, and its responses.
#pragma once

#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>
#include <string>

namespace warren::submit {

using WebRequest = boost::beast::http::request<boost::beast::http::empty_body>;
using WebResponse = boost::beast::http::response<boost::beast::http::string_body>;

/// A response with headers that protect the page: browsers do not store it, do not show it in frames, and let
/// it load nothing from elsewhere.
WebResponse Respond(boost::beast::http::status status, const char* type, std::string body);
/// A plain-text response with one line that explains why the request is refused.
WebResponse Refuse(boost::beast::http::status status, std::string why);
/// Lets pages of any origin show the response in a frame, as notebooks on another port or host do.
void AllowFrames(WebResponse& response);
/// Isolates the response, which is a page with inline scripts, from everything else that this server serves.
void Isolate(WebResponse& response);

inline constexpr const char* kHtml = "text/html; charset=utf-8";
inline constexpr const char* kJson = "application/json";

}  // namespace warren::submit
