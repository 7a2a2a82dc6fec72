#include "submit/monitor/web_message.h"

#include <boost/beast/http/field.hpp>
#include <utility>

namespace warren::submit {
namespace {

namespace http = boost::beast::http;

constexpr const char* kPolicyName = "Content-Security-Policy";
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
constexpr const char* kPolicyOfFrames =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors *";
constexpr const char* kPolicyOfIsolated =
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'";

}  // namespace

WebResponse Respond(http::status status, const char* type, std::string body) {
  WebResponse response(status, 11);
  response.set(http::field::content_type, type);
  response.set(http::field::cache_control, "no-store");
  response.set("X-Content-Type-Options", "nosniff");
  response.set("Referrer-Policy", "no-referrer");  // the URL may contain the token
  response.set(kPolicyName, kPolicy);
  response.body() = std::move(body);
  return response;
}

WebResponse Refuse(http::status status, std::string why) {
  return Respond(status, "text/plain; charset=utf-8", std::move(why) + "\n");
}

void AllowFrames(WebResponse& response) {
  response.set(kPolicyName, kPolicyOfFrames);
}

void Isolate(WebResponse& response) {
  response.set(kPolicyName, kPolicyOfIsolated);
}

}  // namespace warren::submit
