#include "rabit_engine/device/device_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "rabit_engine/base/error.h"

namespace warren::device {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(DeviceLibrary, IsLookedForBesideLibrabitFirst) {
  EXPECT_THAT(LibraryCandidates("", {"/a", "/b"}),
              ElementsAre("/a/librabit_cuda.so", "/b/librabit_cuda.so", "librabit_cuda.so"));
  EXPECT_THAT(LibraryCandidates("", {}), ElementsAre("librabit_cuda.so"));
}

TEST(DeviceLibrary, IsTheOneThatTheUserNamesAndNoOther) {
  EXPECT_THAT(LibraryCandidates("/mine.so", {"/a"}), ElementsAre("/mine.so"));
}

TEST(DeviceLibrary, TellsWhatWasTried) {
  setenv("WARREN_CUDA_LIBRARY", "/no/such/library.so", 1);
  EXPECT_THAT([] { LoadDevices(); },
              ThrowsMessage<EngineError>(HasSubstr("/no/such/library.so: cannot open")));
  setenv("WARREN_CUDA_LIBRARY", "libm.so.6", 1);
  EXPECT_THAT([] { LoadDevices(); },
              ThrowsMessage<EngineError>(HasSubstr("is not the CUDA part of this engine")));
  unsetenv("WARREN_CUDA_LIBRARY");
}

}  // namespace
}  // namespace warren::device
