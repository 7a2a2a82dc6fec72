// The transport of a rank that shares memory with some of its peers: rings in shared memory to those peers,
// TCP to the others.
#pragma once

#include <span>
#include <vector>

#include "rabit_engine/host/shm_transport.h"
#include "rabit_engine/transport/tcp/tcp_transport.h"
#include "rabit_engine/transport/transport.h"

namespace warren {

/// `local` and `remote` must outlive this object. Never makes a TCP link between ranks that share memory, but
/// watches such links if the TCP transport already has them.
class MixedTransport final : public Transport, private WaitObserver {
 public:
  MixedTransport(ShmTransport& local, TcpTransport& remote) : local_(local), remote_(remote) {
    remote_.SetWaitObserver(this);
  }

  int rank() const override { return remote_.rank(); }
  int world_size() const override { return remote_.world_size(); }
  void Connect(std::span<const int> peers) override;
  Link& To(int peer) override { return local_.Reaches(peer) ? local_.To(peer) : remote_.To(peer); }
  void Wait(std::span<const Interest> interests, Clock::time_point deadline) override;
  void SetWaitObserver(WaitObserver* observer) override { wait_observer_ = observer; }
  using Transport::Abort;
  void Abort(int lost_rank, int shortage) noexcept override;
  void Interrupt() override { local_.Interrupt(); }
  void Resume() override { local_.Resume(); }
  void ExpectPeersToLeave() override {
    local_.ExpectPeersToLeave();
    remote_.ExpectPeersToLeave();
  }

 private:
  /// Observes the waits of the TCP transport during its Connect.
  void OnWait(std::span<const Interest> awaited, Clock::time_point since, Clock::time_point looked) override;
  int WhoIsLate(std::span<const Interest> awaited, Clock::time_point deadline) override;

  ShmTransport& local_;
  TcpTransport& remote_;
  WaitObserver* wait_observer_ = nullptr;
  WaitPolicy wait_policy_;
  std::vector<Interest> remote_interests_;
};

}  // namespace warren
