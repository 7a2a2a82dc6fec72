#include "submit/trace/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace warren::submit {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

using Variables = std::map<std::string, std::string>;

FoundTraceSettings Find(const Variables& variables) {
  return FindTraceSettings([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end() || found->second.empty()) return std::nullopt;
    return found->second;
  });
}

/// Finds the settings for an endpoint and one more variable.
FoundTraceSettings FindWith(const std::string& name, const std::string& value) {
  return Find({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"}, {name, value}});
}

/// Expects that no traces are sent and that there is one message, which is returned.
std::string Refusal(const Variables& variables) {
  const auto found = Find(variables);
  EXPECT_FALSE(found.settings);
  EXPECT_EQ(found.messages.size(), 1U);
  return found.messages.empty() ? "" : found.messages[0].text;
}

TEST(TraceSettings, NoTracesAreSentWithoutAnEndpoint) {
  const auto found = Find({{"OTEL_SERVICE_NAME", "train"}, {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}});
  EXPECT_FALSE(found.settings);
  EXPECT_THAT(found.messages, IsEmpty());
}

TEST(TraceSettings, TheEndpointOfAllSignalsGetsThePathOfTraces) {
  for (const char* endpoint : {"http://c:4318", "http://c:4318/", "HTTP://c:4318"}) {
    const auto found = Find({{"OTEL_EXPORTER_OTLP_ENDPOINT", endpoint}});
    ASSERT_TRUE(found.settings) << endpoint;
    EXPECT_EQ(found.settings->host, "c");
    EXPECT_EQ(found.settings->port, "4318");
    EXPECT_EQ(found.settings->authority, "c:4318");
    EXPECT_EQ(found.settings->target, "/v1/traces");
    EXPECT_THAT(found.messages, IsEmpty());
  }
  EXPECT_EQ(Find({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c/otlp"}}).settings->target, "/otlp/v1/traces");
}

TEST(TraceSettings, TheEndpointOfTracesIsUsedAsItIsAndTakesPrecedence) {
  const auto found = Find({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://other:1"},
                           {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://[::1]/spans?key=1#part"}});
  ASSERT_TRUE(found.settings);
  EXPECT_EQ(found.settings->host, "::1");
  EXPECT_EQ(found.settings->port, "80");
  EXPECT_EQ(found.settings->authority, "[::1]");
  EXPECT_EQ(found.settings->target, "/spans?key=1");
  EXPECT_EQ(Find({{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://c:4318"}}).settings->target, "/");
}

TEST(TraceSettings, OnlyTheExporterCalledOtlpTurnsThemOn) {
  const auto sends = [](const std::string& exporters) {
    return Find({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1"}, {"OTEL_TRACES_EXPORTER", exporters}})
        .settings.has_value();
  };
  EXPECT_TRUE(sends("otlp"));
  EXPECT_TRUE(sends("console, otlp"));
  EXPECT_FALSE(sends("notlp"));
  EXPECT_FALSE(sends("none"));
}

TEST(TraceSettings, EndpointsThatAreNoUrlsAreRefused) {
  for (const char* endpoint :
       {"c:4318", "http://", "http://:4318", "http://c:0", "http://c:65536", "http://c:4318x",
        "http://user@c:4318", "http://::1:4318", "http://c d", "http://c\r\nX: y", "ftp://c"}) {
    const std::string text = Refusal({{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", endpoint}});
    EXPECT_THAT(text, HasSubstr("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is '")) << endpoint;
    EXPECT_THAT(text, HasSubstr("http://collector:4318"));
  }
}

TEST(TraceSettings, NoPasswordAndNoKeyOfAnEndpointIsShown) {
  for (const char* endpoint :
       {"http://user:secret@c:4318/x?key=secret", "https://secret@c:4318/x", "ftp://a:secret@c:4318/x#secret",
        "http://a:se/cret@c:4318/x", "a:se?cret#secret@c:4318/x"}) {
    const std::string text = Refusal({{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", endpoint}});
    EXPECT_THAT(text, HasSubstr("c:4318/x' with a user name or a password")) << endpoint;
    EXPECT_THAT(text, Not(HasSubstr("cret"))) << endpoint;
  }
  EXPECT_THAT(Refusal({{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "ftp://c/x?key=secret"}}),
              HasSubstr("is 'ftp://c/x', which is not a URL"));
  const auto found = Find({{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://c:4318/x?key=secret"}});
  ASSERT_TRUE(found.settings);
  EXPECT_EQ(found.settings->url, "http://c:4318/x");
  EXPECT_EQ(found.settings->target, "/x?key=secret");
}

TEST(TraceSettings, HttpsHasItsOwnPortAndAuthorities) {
  const auto found =
      Find({{"OTEL_EXPORTER_OTLP_ENDPOINT", "https://c"}, {"OTEL_EXPORTER_OTLP_CERTIFICATE", "ca.pem"}});
  ASSERT_TRUE(found.settings);
  EXPECT_TRUE(found.settings->is_https);
  EXPECT_EQ(found.settings->port, "443");
  EXPECT_EQ(found.settings->authorities, "ca.pem");
  EXPECT_THAT(found.messages, IsEmpty());
  EXPECT_FALSE(FindWith("OTEL_EXPORTER_OTLP_CERTIFICATE", "ca.pem").settings->is_https);
  const auto own = Find(
      {{"OTEL_EXPORTER_OTLP_ENDPOINT", "https://c"}, {"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "own.pem"}});
  ASSERT_EQ(own.messages.size(), 1U);
  EXPECT_THAT(own.messages[0].text, HasSubstr("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE has no effect"));
}

TEST(TraceSettings, ProtocolsOtherThanHttpAreRefusedWithWhatToSet) {
  const std::string text =
      Refusal({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4317"}, {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}});
  EXPECT_THAT(text, HasSubstr("OTEL_EXPORTER_OTLP_PROTOCOL is 'grpc'"));
  EXPECT_THAT(text, HasSubstr("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json"));
  EXPECT_THAT(text, HasSubstr("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"));
  // The variable that is specific to traces takes precedence.
  EXPECT_TRUE(Find({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"},
                    {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"},
                    {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"}})
                  .settings);
}

TEST(TraceSettings, WithTheProtocolOfProtobufItIsSaidThatJsonIsSent) {
  const auto found = FindWith("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf");
  ASSERT_TRUE(found.settings);
  ASSERT_EQ(found.messages.size(), 1U);
  EXPECT_EQ(found.messages[0].severity, Severity::kInfo);
  EXPECT_THAT(found.messages[0].text, HasSubstr("sent as http/json"));
}

TEST(TraceSettings, TracesCanBeTurnedOff) {
  EXPECT_FALSE(FindWith("OTEL_SDK_DISABLED", "True").settings);
  EXPECT_TRUE(FindWith("OTEL_SDK_DISABLED", "false").settings);
  EXPECT_FALSE(FindWith("OTEL_TRACES_EXPORTER", "none").settings);
  EXPECT_TRUE(FindWith("OTEL_TRACES_EXPORTER", "console,otlp").settings);
  EXPECT_THAT(Find({{"OTEL_EXPORTER_OTLP_ENDPOINT", "?"}, {"OTEL_SDK_DISABLED", "true"}}).messages,
              IsEmpty());
}

TEST(TraceSettings, HeadersArePercentDecoded) {
  EXPECT_THAT(FindWith("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b%3D, x = 1=2 ,").settings->headers,
              ElementsAre(Pair("api-key", "a b="), Pair("x", "1=2")));
  EXPECT_THAT(Find({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"},
                    {"OTEL_EXPORTER_OTLP_HEADERS", "a=1"},
                    {"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "b=2"}})
                  .settings->headers,
              ElementsAre(Pair("b", "2")));
}

TEST(TraceSettings, InvalidHeadersAreLeftOutWithoutShowingThem) {
  for (const char* text :
       {"secret", "a=secret%2", "a=%zzsecret", "a=1%0d%0asecret", "a b=secret", "=secret"}) {
    const auto found = FindWith("OTEL_EXPORTER_OTLP_HEADERS", text);
    ASSERT_TRUE(found.settings) << text;
    EXPECT_THAT(found.settings->headers, IsEmpty()) << text;
    ASSERT_EQ(found.messages.size(), 1U) << text;
    EXPECT_THAT(found.messages[0].text, HasSubstr("OTEL_EXPORTER_OTLP_HEADERS"));
    EXPECT_THAT(found.messages[0].text, testing::Not(HasSubstr("secret")));
  }
}

TEST(TraceSettings, TheResourceHasANameAndTheUsersAttributes) {
  EXPECT_EQ(Find({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"}}).settings->resource,
            (Attributes{{"service.name", "dmlc-submit"}}));
  EXPECT_EQ(FindWith("OTEL_RESOURCE_ATTRIBUTES", "team=a%2Cb,service.name=train").settings->resource,
            (Attributes{{"service.name", "train"}, {"team", "a,b"}}));
  EXPECT_EQ(Find({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"},
                  {"OTEL_SERVICE_NAME", "nightly"},
                  {"OTEL_RESOURCE_ATTRIBUTES", "service.name=train"}})
                .settings->resource,
            (Attributes{{"service.name", "nightly"}}));
  const auto found = FindWith("OTEL_RESOURCE_ATTRIBUTES", "team");
  EXPECT_EQ(found.settings->resource.size(), 1U);
  EXPECT_EQ(found.messages.size(), 1U);
}

TEST(TraceSettings, TimesAreInMilliseconds) {
  const auto found = Find({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"},
                           {"OTEL_EXPORTER_OTLP_TIMEOUT", "1500"},
                           {"OTEL_BSP_EXPORT_TIMEOUT", "250"}});
  EXPECT_EQ(found.settings->request_timeout.count(), 1500);
  EXPECT_EQ(found.settings->final_timeout.count(), 250);
  for (const char* text : {"5s", "0", "-1"}) {
    const auto wrong = FindWith("OTEL_BSP_EXPORT_TIMEOUT", text);
    EXPECT_EQ(wrong.settings->final_timeout.count(), 5000) << text;
    EXPECT_EQ(wrong.messages.size(), 1U) << text;
  }
}

TEST(TraceSettings, TheJobBelongsToTheTraceOfItsCaller) {
  const auto found = Find({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"},
                           {"TRACEPARENT", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
                           {"TRACESTATE", "vendor=1"}});
  ASSERT_TRUE(found.settings && found.settings->caller);
  EXPECT_EQ(found.settings->caller->trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(found.settings->caller->parent, "00f067aa0ba902b7");
  EXPECT_EQ(found.settings->caller->state, "vendor=1");
  EXPECT_TRUE(FindWith("TRACEPARENT", "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03-later")
                  .settings->caller);
}

TEST(TraceSettings, ATraceThatIsNotSampledGetsNoSpans) {
  const auto found = FindWith("TRACEPARENT", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-02");
  EXPECT_FALSE(found.settings);
  ASSERT_EQ(found.messages.size(), 1U);
  EXPECT_EQ(found.messages[0].severity, Severity::kInfo);
}

TEST(TraceSettings, WithAMalformedTraceparentTheJobBeginsATrace) {
  for (const char* text : {"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
                           "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                           "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
                           "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01", "x"}) {
    const auto found = FindWith("TRACEPARENT", text);
    ASSERT_TRUE(found.settings) << text;
    EXPECT_FALSE(found.settings->caller) << text;
    ASSERT_EQ(found.messages.size(), 1U) << text;
    EXPECT_THAT(found.messages[0].text, HasSubstr("TRACEPARENT is malformed"));
  }
}

}  // namespace
}  // namespace warren::submit
