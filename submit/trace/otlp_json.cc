#include "submit/trace/otlp_json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>

namespace warren::submit {
namespace {

using Json = nlohmann::ordered_json;

// Values of OTLP's enums Span.SpanKind and Status.StatusCode.
constexpr int kInternal = 1;
constexpr int kError = 2;

/// JSON has no infinities and no NaN; protobuf's JSON encoding writes them as strings.
Json NumberJson(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  return number;
}

Json ValueJson(const AttributeValue& value) {
  return std::visit(
      [](const auto& one) -> Json {
        using Value = std::decay_t<decltype(one)>;
        if constexpr (std::is_same_v<Value, bool>) {
          return {{"boolValue", one}};
        } else if constexpr (std::is_same_v<Value, std::int64_t>) {
          return {{"intValue", std::to_string(one)}};
        } else if constexpr (std::is_same_v<Value, double>) {
          return {{"doubleValue", NumberJson(one)}};
        } else {
          return {{"stringValue", one}};
        }
      },
      value);
}

Json AttributesJson(const Attributes& attributes) {
  Json list = Json::array();
  for (const auto& [name, value] : attributes) list.push_back({{"key", name}, {"value", ValueJson(value)}});
  return list;
}

Json SpanJson(const TraceContext& context, const Span& span) {
  Json json = {{"traceId", context.trace_id}, {"spanId", span.id}};
  if (!context.state.empty()) json["traceState"] = context.state;
  if (!span.parent.empty()) json["parentSpanId"] = span.parent;
  json["name"] = span.name;
  json["kind"] = kInternal;
  json["startTimeUnixNano"] = std::to_string(span.begin_ns);
  json["endTimeUnixNano"] = std::to_string(span.end_ns);
  json["attributes"] = AttributesJson(span.attributes);
  for (const SpanEvent& event : span.events) {
    json["events"].push_back({{"timeUnixNano", std::to_string(event.when_ns)},
                              {"name", event.name},
                              {"attributes", AttributesJson(event.attributes)}});
  }
  if (span.dropped_events > 0) json["droppedEventsCount"] = span.dropped_events;
  if (span.has_failed) json["status"] = {{"message", span.error}, {"code", kError}};
  return json;
}

}  // namespace

std::string OtlpJson(const Attributes& resource, const TraceContext& context, std::span<const Span> spans) {
  Json list = Json::array();
  for (const Span& span : spans) list.push_back(SpanJson(context, span));
  const Json scope_spans = {{"scope", {{"name", "dmlc-submit"}}}, {"spans", std::move(list)}};
  const Json resource_spans = {{"resource", {{"attributes", AttributesJson(resource)}}},
                               {"scopeSpans", Json::array({scope_spans})}};
  return Json{{"resourceSpans", Json::array({resource_spans})}}.dump(-1, ' ', false,
                                                                     Json::error_handler_t::replace);
}

std::string RejectedByCollector(const std::string& answer) {
  const Json json = Json::parse(answer, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("partialSuccess")) return {};
  const Json& partial = json["partialSuccess"];
  if (!partial.is_object() || !partial.contains("rejectedSpans")) return {};
  const Json& count = partial["rejectedSpans"];
  const std::string number = count.is_string() ? count.get<std::string>() : count.dump();
  if (number == "0") return {};
  const bool says_why = partial.contains("errorMessage") && partial["errorMessage"].is_string();
  return fmt::format("{} span{} rejected: {}", number, number == "1" ? "" : "s",
                     says_why ? partial["errorMessage"].get<std::string>() : "no reason given");
}

}  // namespace warren::submit
