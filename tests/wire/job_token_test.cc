// The job token and its proof: hash functions compared with published test vectors, and the proofs that each
// party accepts.
#include "wire/job_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "wire/authentication.h"
#include "wire/printable.h"

namespace warren::wire {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

std::string Hex(const Digest& digest) {
  return ToHex(BytesOf(digest));
}

TEST(Sha256, GivesTheDigestsOfFips180) {
  EXPECT_EQ(Hex(Sha256().Finish()), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Hex(Sha256().Update("abc").Finish()),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Hex(Sha256().Update("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq").Finish()),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  Sha256 million;
  for (int i = 0; i < 1000; ++i) million.Update(std::string(1000, 'a'));
  EXPECT_EQ(Hex(million.Finish()), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotCareHowItsInputIsCut) {
  const std::string text(200, 'x');
  for (std::size_t length = 0; length <= text.size(); ++length) {
    const std::string_view all = std::string_view(text).substr(0, length);
    Sha256 bytewise;
    for (const char& c : all) bytewise.Update({&c, 1});
    EXPECT_EQ(bytewise.Finish(), Sha256().Update(all).Finish()) << length;
  }
}

TEST(HmacSha256, GivesTheCodesOfRfc4231) {
  EXPECT_EQ(Hex(HmacSha256(std::string(20, '\x0b'), {"Hi There"})),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(Hex(HmacSha256("Jefe", {"what do ya want ", "for nothing?"})),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(
      Hex(HmacSha256(std::string(131, '\xaa'), {"Test Using Larger Than Block-Size Key - Hash Key First"})),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(JobToken, IsWrittenAndReadAsHexadecimalDigits) {
  const JobToken token = JobToken::Random();
  EXPECT_EQ(token.ToHex().size(), 64U);
  EXPECT_EQ(JobToken::Parse(token.ToHex()), token);
  EXPECT_EQ(JobToken::Parse("  " + token.ToHex() + "\n"), token);
  EXPECT_FALSE(JobToken::Random() == token);
}

TEST(JobToken, AWrongOneIsRefusedWithoutBeingShown) {
  const std::string almost(63, 'a');
  for (const std::string& text : {std::string(), almost, almost + "g", almost + "aa", almost + " a"}) {
    EXPECT_THAT([&] { JobToken::Parse(text); },
                ThrowsMessage<std::invalid_argument>(HasSubstr("64 hexadecimal digits")));
    if (text.empty()) continue;
    EXPECT_THAT([&] { JobToken::Parse(text); }, ThrowsMessage<std::invalid_argument>(Not(HasSubstr("aaa"))));
  }
}

TEST(JobToken, GivesAnotherSecretForEachPurposeAndContext) {
  const JobToken token = JobToken::Parse(std::string(64, '7'));
  EXPECT_EQ(token.Derive("links", "x"), token.Derive("links", "x"));
  EXPECT_NE(token.Derive("links", "x"), token.Derive("links", "y"));
  EXPECT_NE(token.Derive("links"), token.Derive("worker"));
  EXPECT_NE(token.Derive("links", "x"), token.Derive("linksx"));
  EXPECT_NE(token.Derive("links"), JobToken::Parse(std::string(64, '8')).Derive("links"));
}

TEST(Authentication, AProofHoldsForOneSideOneTokenAndTheseNoncesOnly) {
  const JobToken token = JobToken::Random();
  const Nonce a = RandomNonce();
  const Nonce b = RandomNonce();
  const Digest proof = AuthenticationKeys(token).Proof(Party::kWorker, a, b);
  EXPECT_EQ(AuthenticationKeys(token).Proof(Party::kWorker, a, b), proof);
  EXPECT_NE(AuthenticationKeys(token).Proof(Party::kTracker, a, b), proof);
  EXPECT_NE(AuthenticationKeys(token).Proof(Party::kWorker, b, a), proof);
  EXPECT_NE(AuthenticationKeys(token).Proof(Party::kWorker, a, RandomNonce()), proof);
  EXPECT_NE(AuthenticationKeys(JobToken::Random()).Proof(Party::kWorker, a, b), proof);
}

TEST(PrintableLines, LeavesTextAndEscapesWhatATerminalWouldObey) {
  EXPECT_EQ(PrintableLines("a\tb\nü 字 🐰\r\n"), "a\tb\nü 字 🐰\n");
  EXPECT_EQ(PrintableLines("\x1b[2J\x07\x7f\r"), "\\x1b[2J\\x07\\x7f\\x0d");
  EXPECT_EQ(PrintableLines("\xc2\x9b[2J"), "\\xc2\\x9b[2J");  // U+009B, CSI in one character
  EXPECT_EQ(PrintableLines(std::string("\0", 1)), "\\x00");
  EXPECT_EQ(PrintableLines("a\u202ebc\u2066\u2028"), "a\\u202ebc\\u2066\\u2028");
  EXPECT_EQ(PrintableLines("\u2027\u202f\u2065\u206a"), "\u2027\u202f\u2065\u206a");
  for (const char* const broken :
       {"\xff", "\xc3", "\xc0\x9b", "\xe0\x82\x9b", "\xed\xa0\x80", "\xf4\x90\x80\x80"}) {
    EXPECT_EQ(PrintableLines(broken).front(), '\\') << broken;
  }
}

TEST(PrintableLine, IsOneLine) {
  EXPECT_EQ(PrintableLine("a\tb\nc\r\n"), "a b c ");
  EXPECT_EQ(PrintableLine("\x1b[2J"), "\\x1b[2J");
}

}  // namespace
}  // namespace warren::wire
