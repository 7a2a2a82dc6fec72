// The last lines of a process's output.
#include "submit/job/process_output.h"

#include <gmock/gmock.h>

namespace warren::submit {
namespace {

using testing::ElementsAre;

TEST(ProcessOutput, KeepsTheLatestStateOfAProgressBar) {
  ProcessOutput output("");
  const auto ignore = [](Stream, std::string_view) {};
  for (const char* bytes : {"before\n", "\r 0%", "\r 50%", "\r100%\n", "after\n"})
    output.Append(Stream::kErr, bytes, ignore);
  EXPECT_THAT(output.tail(), ElementsAre("before", "100%", "after"));
}

TEST(ProcessOutput, KeepsAProgressBarThatEndsWithAReturnAndANewline) {
  ProcessOutput output("");
  const auto ignore = [](Stream, std::string_view) {};
  for (const char* bytes : {"\r 50%", "\r100%", "\r\n", "after\r\n"})
    output.Append(Stream::kErr, bytes, ignore);
  EXPECT_THAT(output.tail(), ElementsAre("100%\r", "after\r"));
}

}  // namespace
}  // namespace warren::submit
