// Bootstraps let the ranks of a job find each other before they have transports: through a tracker, MPI,
// Slurm, a launcher's PMI-1, or an existing channel (rendezvous_bootstrap.h). A world of one needs none of
// these.
#pragma once

#include <string>
#include <vector>

#include "rabit_engine/base/oob_allgather.h"
#include "rabit_engine/transport/tcp/stream.h"

namespace warren {

/// A connection to a peer, made while bootstrapping.
struct ConnectedPeer {
  int rank = -1;
  tcp::Stream stream;
};

class Bootstrap : public OobAllgather {
 public:
  /// Returns the connections made between ranks; only the first call returns any. Allgather must not be
  /// called after this.
  virtual std::vector<ConnectedPeer> TakeLinks() { return {}; }
  /// Shows a line to the user: on the tracker's console, or on stdout without a tracker.
  virtual void Print(const std::string& text) = 0;
  /// Reports to the tracker or the launcher, if there is one, that this rank has finished successfully.
  /// Called once.
  virtual void Shutdown() = 0;
  /// Like Shutdown, but waits until all ranks have called it. Returns false if another rank was lost: this
  /// rank has not left the job and must join again. Does not wait if there is no tracker or the tracker
  /// cannot be reached.
  virtual bool ShutdownTogether() {
    Shutdown();
    return true;
  }
};

}  // namespace warren
