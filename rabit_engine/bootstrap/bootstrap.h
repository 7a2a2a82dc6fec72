// Bootstraps let the ranks of a job find each other before they have transports: through a tracker, MPI,
// Slurm, a launcher's PMI-1, or an existing channel (rendezvous_bootstrap.h). A world of one needs none of
// these.
#pragma once

#include <cstdio>
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
  /// Returns the connections between ranks that the bootstrap has made, if any; only the first call returns
  /// them. Allgather must not be called after this.
  virtual std::vector<ConnectedPeer> TakeLinks() { return {}; }
  /// Shows text to the user: in the tracker's output, or on this process's stdout if there is no tracker.
  virtual void Print(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }
  /// Reports to the tracker or the launcher, if there is one, that this rank has finished successfully. Must
  /// be called only once.
  virtual void Shutdown() = 0;
  /// Like Shutdown, but waits until all ranks have called it. Returns false if another rank was lost before
  /// that: this rank has then not left the job and must join again. Does not wait if there is no tracker or
  /// the tracker cannot be reached. Throws TimedOut if it has waited too long.
  virtual bool ShutdownTogether() {
    Shutdown();
    return true;
  }
};

}  // namespace warren
