#include "submit/trace/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "wire/whole_number.h"

namespace warren::submit {
namespace {

constexpr std::string_view kHttp = "http://";
constexpr std::string_view kHttps = "https://";
constexpr char kPath[] = "/v1/traces";
constexpr char kServiceName[] = "service.name";
constexpr char kDefaultService[] = "dmlc-submit";

/// Returns the variable that sets an option of exporters: the one for traces or, if that is not set, the one
/// for all signals (traces, metrics and logs).
std::optional<wire::SetVariable> OfExporter(const wire::LookUp& look_up, const char* for_traces,
                                            const char* for_all) {
  for (const char* name : {for_traces, for_all}) {
    if (auto value = look_up(name)) return wire::SetVariable{name, *std::move(value)};
  }
  return std::nullopt;
}

std::string Lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

std::string_view Trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// Decodes %XX. Returns nullopt if a percent sign is not followed by two hexadecimal digits.
std::optional<std::string> PercentDecoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    unsigned value = 0;
    const std::string_view digits = text.substr(i + 1, 2);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.size() != 2 || error != std::errc{} || end != digits.data() + 2) return std::nullopt;
    decoded += static_cast<char>(value);
    i += 2;
  }
  return decoded;
}

bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

bool HasControls(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; });
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

/// Parses "name=value,name=value" with percent-encoded values. Returns nullopt if any part is invalid.
std::optional<Pairs> ParsePairs(std::string_view text) {
  Pairs pairs;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = Trimmed(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
    if (part.empty()) continue;
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const auto value = PercentDecoded(Trimmed(part.substr(equals + 1)));
    const std::string_view name = Trimmed(part.substr(0, equals));
    if (name.empty() || !value) return std::nullopt;
    pairs.emplace_back(name, *value);
  }
  return pairs;
}

/// The URL without the parts that may contain secrets: a user name and a password, query and fragment. A
/// password in which special characters are not encoded is left out, too.
std::string WithoutSecrets(const std::string& url) {
  const std::size_t scheme_end = url.find("://");
  const std::size_t begin = scheme_end == std::string::npos ? 0 : scheme_end + 3;
  const std::size_t at = url.find('@', begin) == std::string::npos ? begin : url.rfind('@') + 1;
  const std::string rest = url.substr(at);
  return url.substr(0, begin) + rest.substr(0, rest.find_first_of("?#"));
}

/// Parses a URL. Returns nullopt unless it is a valid URL with the scheme http or https.
std::optional<TraceSettings> ParseUrl(const std::string& url) {
  const bool is_https = Lower(url).starts_with(kHttps);
  if ((!is_https && !Lower(url).starts_with(kHttp)) || HasControls(url) || url.find(' ') != std::string::npos)
    return std::nullopt;
  TraceSettings settings;
  settings.url = url.substr(0, url.find_first_of("?#"));
  settings.is_https = is_https;
  const std::string_view rest = std::string_view(url).substr((is_https ? kHttps : kHttp).size());
  const std::size_t end = std::min(rest.find_first_of("/?#"), rest.size());
  settings.authority = rest.substr(0, end);
  settings.target = rest.substr(end, rest.find('#') - end);
  if (!settings.target.starts_with('/')) settings.target.insert(0, "/");
  std::string_view host = settings.authority;
  std::string_view port = is_https ? "443" : "80";
  const std::size_t colon = host.rfind(':');
  if (colon != std::string_view::npos && host.find(']', colon) == std::string_view::npos) {
    port = host.substr(colon + 1);
    host = host.substr(0, colon);
  }
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find_first_of(":[]@") != std::string_view::npos) {
    return std::nullopt;
  }
  if (host.empty() || wire::WholeNumber<std::uint16_t>(port).value_or(0) == 0) return std::nullopt;
  settings.host = host;
  settings.port = port;
  return settings;
}

bool IsHex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool IsZero(std::string_view text) {
  return text.find_first_not_of('0') == std::string_view::npos;
}

struct Caller {
  TraceContext context;
  bool sampled = false;
};

/// Parses a traceparent of W3C Trace Context: "00-<32 digits>-<16 digits>-<2 digits>", in hexadecimal. In
/// later versions, another "-" and more text may follow. Returns nullopt if it is invalid.
std::optional<Caller> ParseTraceparent(std::string_view text) {
  if (text.size() < 55 || text[2] != '-' || text[35] != '-' || text[52] != '-') return std::nullopt;
  const std::string_view version = text.substr(0, 2), trace = text.substr(3, 32),
                         parent = text.substr(36, 16), flags = text.substr(53, 2);
  const bool has_more = text.size() > 55;
  if (!IsHex(version) || version == "ff" || !IsHex(trace) || IsZero(trace) || !IsHex(parent) ||
      IsZero(parent) || !IsHex(flags) || (has_more && (version == "00" || text[55] != '-')))
    return std::nullopt;
  unsigned bits = 0;
  std::from_chars(flags.data(), flags.data() + 2, bits, 16);
  return Caller{{std::string(trace), std::string(parent), ""}, (bits & 1U) != 0};
}

/// Returns the URL for traces, including its path, and the variable that sets it; nullopt if no variable
/// does.
std::optional<wire::SetVariable> EndpointOf(const wire::LookUp& look_up) {
  auto endpoint = OfExporter(look_up, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT");
  if (!endpoint || endpoint->name != std::string_view("OTEL_EXPORTER_OTLP_ENDPOINT")) return endpoint;
  while (endpoint->value.ends_with('/')) endpoint->value.pop_back();
  endpoint->value += kPath;
  return endpoint;
}

class Finder {
 public:
  explicit Finder(const wire::LookUp& look_up) : look_up_(look_up) {}

  FoundTraceSettings Find() {
    FindTarget();
    if (found_.settings) FindCaller();
    if (found_.settings) {
      FindCertificates();
      FindHeaders();
      FindResource();
      FindTimes();
    }
    return std::move(found_);
  }

 private:
  void Warn(std::string text) { found_.messages.push_back({Severity::kWarning, std::move(text)}); }

  bool IsOff() const {
    if (Lower(look_up_("OTEL_SDK_DISABLED").value_or("")) == "true") return true;
    auto exporters = look_up_("OTEL_TRACES_EXPORTER");
    if (!exporters) return false;
    std::erase(*exporters, ' ');
    return fmt::format(",{},", *exporters).find(",otlp,") == std::string::npos;
  }

  void FindTarget() {
    const auto endpoint = EndpointOf(look_up_);
    if (!endpoint || IsOff()) return;
    const auto protocol =
        OfExporter(look_up_, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL");
    if (protocol && protocol->value != "http/json" && protocol->value != "http/protobuf") {
      return Warn(fmt::format(
          "no traces are sent: {} is '{}', and dmlc-submit sends over HTTP only; set "
          "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json, and OTEL_EXPORTER_OTLP_TRACES_ENDPOINT to the collector's "
          "HTTP port, such as http://collector:4318/v1/traces",
          protocol->name, protocol->value));
    }
    found_.settings = ParseUrl(endpoint->value);
    if (!found_.settings) {
      const bool has_user = endpoint->value.find('@') != std::string::npos;
      return Warn(fmt::format(
          "no traces are sent: {} is '{}'{}", endpoint->name, WithoutSecrets(endpoint->value),
          has_user ? " with a user name or a password, which dmlc-submit does not send; set a URL such as "
                     "http://collector:4318, and OTEL_EXPORTER_OTLP_HEADERS if the collector needs a key"
                   : ", which is not a URL such as http://collector:4318"));
    }
    if (protocol && protocol->value == "http/protobuf") {
      found_.messages.push_back(
          {Severity::kInfo, fmt::format("dmlc-submit's own spans are sent as http/json, although {} is "
                                        "http/protobuf; collectors take both at the same address",
                                        protocol->name)});
    }
  }

  void FindCaller() {
    const auto text = look_up_("TRACEPARENT");
    if (!text) return;
    auto caller = ParseTraceparent(Trimmed(*text));
    if (!caller)
      return Warn(fmt::format("TRACEPARENT is malformed ('{}'): the job begins a trace of its own", *text));
    if (!caller->sampled) {
      found_.messages.push_back(
          {Severity::kInfo, "no traces are sent: TRACEPARENT says that its trace is not sampled"});
      found_.settings.reset();
      return;
    }
    caller->context.state = look_up_("TRACESTATE").value_or("");
    found_.settings->caller = std::move(caller->context);
  }

  void FindCertificates() {
    if (!found_.settings->is_https) return;
    const auto authorities =
        OfExporter(look_up_, "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE");
    if (authorities) found_.settings->authorities = authorities->value;
    const auto own = OfExporter(look_up_, "OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE",
                                "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE");
    if (own)
      Warn(
          fmt::format("{} has no effect: dmlc-submit shows collectors no certificate of its own", own->name));
  }

  void FindHeaders() {
    const auto variable =
        OfExporter(look_up_, "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS");
    if (!variable) return;
    const auto headers = ParsePairs(variable->value);
    const bool valid = headers && std::all_of(headers->begin(), headers->end(), [](const auto& header) {
                         return IsToken(header.first) && !HasControls(header.second);
                       });
    // The message does not contain the value, which usually contains a key.
    if (!valid) {
      return Warn(fmt::format(
          "traces are sent without the headers of {}, which is not of the form name=value,name=value with "
          "percent-encoded values",
          variable->name));
    }
    found_.settings->headers = *headers;
  }

  void FindResource() {
    Pairs pairs;
    if (const auto text = look_up_("OTEL_RESOURCE_ATTRIBUTES")) {
      const auto parsed = ParsePairs(*text);
      if (!parsed) {
        Warn(
            "traces have no resource attributes: OTEL_RESOURCE_ATTRIBUTES is not of the form name=value,name=value "
            "with percent-encoded values");
      }
      pairs = parsed.value_or(Pairs());
    }
    const auto is_service = [](const auto& pair) { return pair.first == kServiceName; };
    const auto named = std::find_if(pairs.begin(), pairs.end(), is_service);
    const std::string service =
        look_up_("OTEL_SERVICE_NAME").value_or(named == pairs.end() ? kDefaultService : named->second);
    std::erase_if(pairs, is_service);
    Attributes& resource = found_.settings->resource;
    resource.emplace_back(kServiceName, service);
    for (auto& [name, value] : pairs) resource.emplace_back(std::move(name), std::move(value));
  }

  void FindTimes() {
    FindTime(OfExporter(look_up_, "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"),
             found_.settings->request_timeout);
    FindTime(OfExporter(look_up_, "OTEL_BSP_EXPORT_TIMEOUT", "OTEL_BSP_EXPORT_TIMEOUT"),
             found_.settings->final_timeout);
  }

  void FindTime(const std::optional<wire::SetVariable>& variable, std::chrono::milliseconds& time) {
    if (!variable) return;
    const std::string& text = variable->value;
    const std::uint32_t milliseconds = wire::WholeNumber<std::uint32_t>(text).value_or(0);
    if (milliseconds == 0) {
      return Warn(fmt::format("{} is '{}', which is not a number of milliseconds; {} is used", variable->name,
                              text, time.count()));
    }
    time = std::chrono::milliseconds(milliseconds);
  }

  const wire::LookUp& look_up_;
  FoundTraceSettings found_;
};

}  // namespace

FoundTraceSettings FindTraceSettings(const wire::LookUp& look_up) {
  return Finder(look_up).Find();
}

}  // namespace warren::submit
