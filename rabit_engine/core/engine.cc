#include "rabit_engine/core/engine.h"

#include "rabit_engine/bootstrap/mpi_bootstrap.h"
#include "rabit_engine/bootstrap/none_bootstrap.h"
#include "rabit_engine/bootstrap/slurm_bootstrap.h"
#include "rabit_engine/bootstrap/tracker_bootstrap.h"
#include "rabit_engine/core/error.h"
#include "rabit_engine/core/native_communicator.h"
#include "rabit_engine/transport/mpi/mpi_engine.h"

namespace warren {
namespace {

Listening ListenHere() {
  Listening listening{tcp::ListenAnywhere(), {}};
  listening.addresses = tcp::ListenAddresses(listening.socket.fd(), "");
  return listening;
}

std::unique_ptr<Communicator> JoinWithTracker(const Settings& settings) {
  auto bootstrap = std::make_unique<TrackerBootstrap>(settings);
  Listening listening{{}, bootstrap->ListenAddresses()};
  listening.socket = tcp::Socket(bootstrap->TakeListener());
  return std::make_unique<NativeCommunicator>(std::move(bootstrap), std::move(listening), settings);
}

std::unique_ptr<Communicator> JoinAlone(const Settings& settings) {
  return std::make_unique<NativeCommunicator>(std::make_unique<NoneBootstrap>(), Listening{}, settings);
}

}  // namespace

std::unique_ptr<Communicator> Join(const Settings& settings) {
  if (settings.engine == EngineKind::kMpi) return JoinMpi(settings);
  switch (settings.bootstrap) {
    case BootstrapKind::kMpi:
      return std::make_unique<NativeCommunicator>(MakeMpiBootstrap(settings), ListenHere(), settings);
    case BootstrapKind::kSlurm:
      return std::make_unique<NativeCommunicator>(MakeSlurmBootstrap(settings), ListenHere(), settings);
    case BootstrapKind::kTracker:
      if (settings.tracker_host.empty()) {
        throw Misuse(
            "RABIT_BOOTSTRAP=tracker, but no tracker is named: set DMLC_TRACKER_URI and DMLC_TRACKER_PORT, "
            "or start the program with dmlc-submit");
      }
      return JoinWithTracker(settings);
    case BootstrapKind::kNone:
      return JoinAlone(settings);
    case BootstrapKind::kAuto:
      break;
  }
  return settings.tracker_host.empty() ? JoinAlone(settings) : JoinWithTracker(settings);
}

}  // namespace warren
