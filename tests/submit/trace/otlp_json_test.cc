#include "submit/trace/otlp_json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

namespace warren::submit {
namespace {

using Json = nlohmann::json;

const TraceContext kContext{"4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", ""};

Span SomeSpan() {
  Span span;
  span.id = "00f067aa0ba902b8";
  span.name = "round";
  span.begin_ns = 1'700'000'000'123'456'789;
  span.end_ns = 1'700'000'001'000'000'000;
  return span;
}

Json JsonOf(const TraceContext& context, const Span& span) {
  const std::vector<Span> spans = {span};
  return Json::parse(OtlpJson({}, context, spans))["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
}

TEST(OtlpJson, IsARequestWithAResourceAScopeAndItsSpans) {
  const std::vector<Span> spans = {SomeSpan(), SomeSpan()};
  const Json json = Json::parse(OtlpJson({{"service.name", "train"}}, kContext, spans));
  const Json attribute = {{"key", "service.name"}, {"value", {{"stringValue", "train"}}}};
  EXPECT_EQ(json["resourceSpans"][0]["resource"]["attributes"], Json::array({attribute}));
  EXPECT_EQ(json["resourceSpans"][0]["scopeSpans"][0]["scope"]["name"], "dmlc-submit");
  EXPECT_EQ(json["resourceSpans"][0]["scopeSpans"][0]["spans"].size(), 2U);
}

TEST(OtlpJson, IdsAreHexadecimalAndTimesAreText) {
  Json wanted = {{"traceId", "4bf92f3577b34da6a3ce929d0e0e4736"},
                 {"spanId", "00f067aa0ba902b8"},
                 {"name", "round"},
                 {"kind", 1},
                 {"startTimeUnixNano", "1700000000123456789"},
                 {"endTimeUnixNano", "1700000001000000000"},
                 {"attributes", Json::array()}};
  EXPECT_EQ(JsonOf(kContext, SomeSpan()), wanted);
  Span span = SomeSpan();
  span.parent = "00f067aa0ba902b9";
  wanted["parentSpanId"] = span.parent;
  wanted["traceState"] = "vendor=1";
  EXPECT_EQ(JsonOf({kContext.trace_id, "", "vendor=1"}, span), wanted);
}

TEST(OtlpJson, AttributesHaveTheirTypes) {
  Span span = SomeSpan();
  span.attributes = {{"text", "a\xff\""},   {"whole", std::int64_t{1} << 60},
                     {"part", 0.5},         {"yes", true},
                     {"nan", std::nan("")}, {"big", HUGE_VAL},
                     {"small", -HUGE_VAL}};
  const Json attributes = JsonOf(kContext, span)["attributes"];
  const std::vector<Json> wanted = {{{"stringValue", "a\xEF\xBF\xBD\""}},
                                    {{"intValue", "1152921504606846976"}},
                                    {{"doubleValue", 0.5}},
                                    {{"boolValue", true}},
                                    {{"doubleValue", "NaN"}},
                                    {{"doubleValue", "Infinity"}},
                                    {{"doubleValue", "-Infinity"}}};
  ASSERT_EQ(attributes.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(attributes[i]["key"], span.attributes[i].first);
    EXPECT_EQ(attributes[i]["value"], wanted[i]);
  }
}

TEST(OtlpJson, AFailureIsStatusTwoWithItsMessage) {
  Span span = SomeSpan();
  span.has_failed = true;
  span.error = "worker 1 exited with code 3";
  span.events = {{1'700'000'000'500'000'000, "process lost", {{"a", std::int64_t{1}}}}};
  span.dropped_events = 7;
  const Json json = JsonOf(kContext, span);
  EXPECT_EQ(json["status"], (Json{{"code", 2}, {"message", "worker 1 exited with code 3"}}));
  ASSERT_EQ(json["events"].size(), 1U);
  EXPECT_EQ(json["events"][0]["timeUnixNano"], "1700000000500000000");
  EXPECT_EQ(json["events"][0]["name"], "process lost");
  EXPECT_EQ(json["events"][0]["attributes"][0]["value"]["intValue"], "1");
  EXPECT_EQ(json["droppedEventsCount"], 7);
}

TEST(OtlpJson, WhatACollectorRejectsIsRead) {
  EXPECT_EQ(RejectedByCollector(R"({"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}})"),
            "3 spans rejected: too old");
  EXPECT_EQ(RejectedByCollector(R"({"partialSuccess":{"rejectedSpans":1}})"),
            "1 span rejected: no reason given");
  for (const char* text :
       {"", "{}", R"({"partialSuccess":{}})", R"({"partialSuccess":{"rejectedSpans":"0"}})", "<html>",
        R"({"partialSuccess":null})", "[1]"}) {
    EXPECT_EQ(RejectedByCollector(text), "") << text;
  }
}

}  // namespace
}  // namespace warren::submit
