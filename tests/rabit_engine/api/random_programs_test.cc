// Random programs over the C API of the collectives, with blocking and asynchronous calls. Ranks are threads.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "rabit_engine/api/collectives_face.h"
#include "rabit_engine/api/session.h"
#include "rabit_engine/recovery/recoverable_communicator.h"
#include "tests/rabit_engine/api/c_communicator.h"
#include "tests/rabit_engine/engine/random_program.h"
#include "tests/rabit_engine/engine/thread_world.h"
#include "tests/rabit_engine/engine/worlds.h"

namespace warren::testing {
namespace {

class CallsWithAndWithoutWaiting : public ::testing::TestWithParam<WorldCase> {};

TEST_P(CallsWithAndWithoutWaiting, InCommunicatorsOfEveryShapeGiveWhatAPlainComputationGives) {
  const WorldCase& world = GetParam();
  for (std::uint64_t seed = 1; seed <= NumPrograms(6) && !HasFailure(); ++seed) {
    ThreadWorld(world.size).Run(SettingsOf(world.places), [seed](NativeCommunicator& native) {
      const auto session = std::make_shared<api::Session>(
          std::make_unique<recovery::RecoverableCommunicator>(native.Split(0, native.rank())));
      CCommunicator communicator(new WarrenComm_{session});
      RandomProgram(seed, communicator).Run(60);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, CallsWithAndWithoutWaiting, ::testing::ValuesIn(EveryWorld()), NameOfCase);

}  // namespace
}  // namespace warren::testing
