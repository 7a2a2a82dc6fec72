#include "rabit_engine/device/cuda/nccl_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "rabit_engine/device/cuda/error.h"

namespace warren::device {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::vector<std::string> CandidatesWith(const std::map<std::string, std::string>& environment) {
  return NcclCandidates([&](const char* name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(NcclLibrary, IsTheLoadersUnlessAPathIsGiven) {
  EXPECT_THAT(CandidatesWith({}), ElementsAre("libnccl.so.2", "libnccl.so"));
  EXPECT_THAT(CandidatesWith({{"DMLC_NCCL_PATH", "/x/libnccl.so.2"}}), ElementsAre("/x/libnccl.so.2"));
  EXPECT_THAT(CandidatesWith({{"DMLC_NCCL_PATH", "/x"}, {"WARREN_NCCL_PATH", "/y"}}), ElementsAre("/y"));
  EXPECT_THAT(CandidatesWith({{"WARREN_NCCL_PATH", "/tmp"}}), ElementsAre("/tmp/libnccl.so.2"));
}

TEST(NcclLibrary, TellsWhatWasTriedAndTriesAgain) {
  setenv("WARREN_NCCL_PATH", "/no/such/nccl.so", 1);
  EXPECT_THAT([] { Nccl(); }, ThrowsMessage<CudaError>(HasSubstr("/no/such/nccl.so: cannot open")));
  setenv("WARREN_NCCL_PATH", "libm.so.6", 1);
  EXPECT_THAT([] { Nccl(); }, ThrowsMessage<CudaError>(HasSubstr("libm.so.6 has no ncclGetVersion")));
  setenv("WARREN_NCCL_PATH", STAND_IN_NCCL, 1);
  EXPECT_EQ(Nccl().version, NCCL_VERSION_CODE);
  EXPECT_EQ(Nccl().file, STAND_IN_NCCL);
}

}  // namespace
}  // namespace warren::device
