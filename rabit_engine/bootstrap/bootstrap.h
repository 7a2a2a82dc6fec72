// How the ranks of a job find each other before they have transports: by a tracker, by MPI, by Slurm, or not
// at all (a world of one).
#pragma once

#include <string>
#include <vector>

#include "rabit_engine/base/oob_allgather.h"
#include "rabit_engine/transport/tcp/stream.h"

namespace warren {

/// A connection to a peer that the bootstrap made on its way.
struct ConnectedPeer {
  int rank = -1;
  tcp::Stream stream;
};

class Bootstrap : public OobAllgather {
 public:
  /// The connections the bootstrap made between ranks; empty afterwards. No Allgather may follow.
  virtual std::vector<ConnectedPeer> TakeLinks() { return {}; }
  /// Shows a line to the user who watches the job (the tracker's console; stdout where there is no tracker).
  virtual void Print(const std::string& text) = 0;
  /// Tells the tracker that this rank has ended well. Called once.
  virtual void Shutdown() = 0;
  /// The same, and waits until all ranks have said so. False: another was lost, and this one has to join
  /// again, which it then has not left. Where there is no tracker, or it cannot be reached, nobody is waited
  /// for.
  virtual bool ShutdownTogether() {
    Shutdown();
    return true;
  }
};

}  // namespace warren
