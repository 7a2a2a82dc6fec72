// Parsing requests to the web server, and deciding whether they are permitted.
#include "submit/monitor/web_request.h"

#include <gtest/gtest.h>

#include "submit/monitor/web_address.h"

namespace warren::submit {
namespace {

TEST(WebAddress, IsAPortOrAHostAndAPort) {
  EXPECT_EQ(ParseWebAddress("9100"), (WebAddress{"127.0.0.1", 9100}));
  EXPECT_EQ(ParseWebAddress("0"), (WebAddress{"127.0.0.1", 0}));
  EXPECT_EQ(ParseWebAddress("node1:80"), (WebAddress{"node1", 80}));
  EXPECT_EQ(ParseWebAddress("[::]:80"), (WebAddress{"::", 80}));
  EXPECT_EQ(ToText({"::1", 80}), "[::1]:80");
  EXPECT_EQ(ToText({"node1", 80}), "node1:80");
}

TEST(WebAddress, IsNothingElse) {
  for (const char* text : {"", "x", "65536", "-1", ":80", "::1:80", "[]:80", "a:b:80", "80:", "1.2.3.4"}) {
    EXPECT_THROW(ParseWebAddress(text), std::runtime_error) << text;
  }
}

TEST(WebTarget, HasItsQueryDecoded) {
  const WebTarget target = ParseTarget("/logs?worker=3&contains=a%20b+%26%zz&empty&=x");
  EXPECT_EQ(target.path, "/logs");
  EXPECT_EQ(target.Value("worker"), "3");
  EXPECT_EQ(target.Value("contains"), "a b &%zz");
  EXPECT_EQ(target.Value("empty"), "");
  EXPECT_EQ(target.Value("missing"), "");
  EXPECT_EQ(ParseTarget("/").path, "/");
}

TEST(WebRequest, ACookieIsFoundByItsWholeName) {
  EXPECT_EQ(CookieValue("a=1; warren-80=xyz; warren-8080=no", "warren-80"), "xyz");
  EXPECT_EQ(CookieValue("notwarren-80=xyz", "warren-80"), "");
  EXPECT_EQ(CookieValue("", "warren-80"), "");
}

TEST(WebRequest, OnlyNamesOfThisMachineAreLoopback) {
  for (const char* host : {"localhost", "localhost:8080", "127.0.0.1:80", "127.1.2.3", "[::1]:80"}) {
    EXPECT_TRUE(NamesLoopback(host)) << host;
  }
  for (const char* host : {"", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example",
                           "10.0.0.1", "[::2]:80", "["}) {
    EXPECT_FALSE(NamesLoopback(host)) << host;
  }
}

TEST(WebRequest, PagesOfOtherOriginsAreTold) {
  for (const char* site : {"", "same-origin", "none"}) EXPECT_FALSE(IsOfAnotherOrigin(site)) << site;
  for (const char* site : {"same-site", "cross-site", "x"}) EXPECT_TRUE(IsOfAnotherOrigin(site)) << site;
}

TEST(WebRequest, APathMayBeginWithTheToken) {
  EXPECT_EQ(PathInside("/in/secret/logs", "secret"), "/logs");
  EXPECT_EQ(PathInside("/in/secret/", "secret"), "/");
  for (const char* path :
       {"/", "/in/", "/in/secret", "/in/secre/", "/in/secrets/", "/in//", "/logs", "/in"}) {
    EXPECT_EQ(PathInside(path, "secret"), std::nullopt) << path;
  }
}

TEST(WebRequest, TheTokenOfThePageIsNotTheJobs) {
  const wire::JobToken token = wire::JobToken::Random();
  EXPECT_EQ(PageToken(token).size(), 32u);
  EXPECT_EQ(PageToken(token), PageToken(token));
  EXPECT_EQ(token.ToHex().find(PageToken(token)), std::string::npos);
  EXPECT_NE(PageToken(token), PageToken(wire::JobToken::Random()));
}

TEST(WebRequest, TheTokenForViewingOpensNothingElse) {
  const wire::JobToken token = wire::JobToken::Random();
  EXPECT_EQ(ViewToken(token).size(), 32u);
  EXPECT_NE(ViewToken(token), PageToken(token));
}

TEST(WebRequest, OnlyTheOwnPageOrAProgramMayChangeSomething) {
  EXPECT_TRUE(MayChange("same-origin", "https://a.proxy", "127.0.0.1:80"));
  EXPECT_TRUE(MayChange("", "", "127.0.0.1:80")) << "curl";
  EXPECT_TRUE(MayChange("", "http://127.0.0.1:80", "127.0.0.1:80"));
  EXPECT_FALSE(MayChange("same-site", "http://127.0.0.1:80", "127.0.0.1:80"));
  EXPECT_FALSE(MayChange("none", "", "127.0.0.1:80"));
  EXPECT_FALSE(MayChange("", "http://127.0.0.1:81", "127.0.0.1:80"));
  EXPECT_FALSE(MayChange("", "null", "127.0.0.1:80"));
}

}  // namespace
}  // namespace warren::submit
