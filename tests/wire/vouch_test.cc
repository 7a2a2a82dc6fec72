#include "wire/vouch.h"

#include <gtest/gtest.h>

namespace warren::wire {
namespace {

constexpr char kTicket[] = "k3J9fQz81Lw-0_ab";

TEST(Vouch, IsReadAsItWasWrittenHoweverItIsCut) {
  for (const std::string task : {"0", "", "NULL", "[xgboost.dask-0]:tcp://10.0.0.1:4711", "a b#c"}) {
    const std::string bytes = Encode(Vouch{task, kTicket});
    Reader reader;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      reader.Append(bytes.substr(i, 1));
      if (i + 1 == sizeof(std::int32_t)) {
        EXPECT_EQ(reader.Int(), kVouchMagic);
      }
      if (i + 1 > sizeof(std::int32_t) && i + 1 < bytes.size()) {
        EXPECT_FALSE(NextVouch(reader));
      }
    }
    const auto vouch = NextVouch(reader);
    ASSERT_TRUE(vouch);
    EXPECT_EQ(vouch->task_id, task);
    EXPECT_EQ(vouch->ticket, kTicket);
  }
}

TEST(Vouch, NeedsATicketThatNobodyGuesses) {
  for (const std::string& text : {std::string("0"), std::string("short 0"), std::string(65, 'x') + " 0",
                                  std::string("k3J9fQz81Lw 0_ab 0")}) {
    Reader reader;
    reader.Append(Writer().String(text).Take());
    EXPECT_THROW(NextVouch(reader), ProtocolError) << text;
  }
}

TEST(Vouch, ThatIsTooLongIsNamed) {
  Reader reader;
  reader.Append(Writer().Int(1 << 20).Take());
  try {
    NextVouch(reader);
    FAIL();
  } catch (const ProtocolError& error) {
    EXPECT_EQ(std::string(error.what()).rfind("the vouch announces 1048576 bytes, ", 0), 0U) << error.what();
  }
}

TEST(Vouch, ATaskIdIsTakenApartAtItsLastSign) {
  const auto split = SplitTicket(std::string("a#b#") + kTicket);
  ASSERT_TRUE(split);
  EXPECT_EQ(split->task_id, "a#b");
  EXPECT_EQ(split->ticket, kTicket);
  for (const char* task : {"0", "", "#", "0#short", "0#k3J9fQz81Lw-0_a!"})
    EXPECT_FALSE(SplitTicket(task)) << task;
}

}  // namespace
}  // namespace warren::wire
