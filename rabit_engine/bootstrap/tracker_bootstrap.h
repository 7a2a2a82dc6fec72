// The bootstrap through a tracker: this process acts as a classic rabit worker
// (docs/reference/tracker-protocol.md). The tracker assigns this process's rank and the ranks to link with:
// its neighbors in a tree and in a ring. Records are gathered along the tree.
//
// On every new link both ends send their rank (the protocol's handshake) and then the engine's own hello.
// Other engines use the same protocol up to this point; because of the hello, their workers are detected
// before they take the following bytes for data.
#pragma once

#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rabit_engine/base/settings.h"
#include "rabit_engine/bootstrap/bootstrap.h"
#include "rabit_engine/transport/tcp/stream.h"
#include "wire/classic.h"

namespace warren {

class TrackerConnection;
class TrackerLost;

class TrackerBootstrap final : public Bootstrap {
 public:
  /// The maximum length of a record.
  static constexpr std::size_t kMaxRecordBytes = std::size_t{64} << 10;

  /// Joins the job: returns when this rank has all its links, and blocks while other workers are missing.
  /// `rank` is set if this process already has a rank and must be linked again. Throws EngineError.
  TrackerBootstrap(const Settings& settings, std::optional<int> rank);

  int rank() const override { return assignment_.rank; }
  int world_size() const override { return assignment_.world_size; }
  std::vector<std::string> Allgather(const std::string& record) override;
  std::vector<ConnectedPeer> TakeLinks() override;
  void Print(const std::string& text) override;
  void Shutdown() override;
  bool ShutdownTogether() override;

  /// Returns the addresses where this rank listens, as "address:port": first the address used to reach the
  /// tracker, then the other addresses of this host.
  std::vector<std::string> ListenAddresses() const;
  /// Returns the descriptor of the listening socket, which the caller owns from now on.
  int TakeListener() { return listener_.Release(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct PendingConnection;

  void Join(wire::classic::Command command);
  wire::classic::LinkPlan MakeConnections(TrackerConnection& tracker, Clock::time_point deadline);
  std::string ConnectTo(const wire::classic::Endpoint& peer, int& shortage);
  std::string Introduce(tcp::Stream& stream, int peer, Clock::time_point deadline);
  void AcceptLinks(int count, TrackerConnection& tracker);
  void AcceptOne(std::list<PendingConnection>& pending);
  static bool DropUnanswered(std::list<PendingConnection>& pending);
  bool Greet(PendingConnection& connection);
  bool Answer(PendingConnection& connection, const std::string& message);
  void Keep(int rank, tcp::Stream stream);
  bool IsNeighbor(int rank) const;
  bool IsWanted(int rank) const;
  std::string_view IfProved(const wire::Digest& digest) const;
  std::vector<int> MissingNeighbors() const;
  void CheckEngines();

  void WriteTo(int peer, const std::string& bytes);
  void ReadFrom(int peer, void* data, std::size_t bytes, Clock::time_point deadline);
  void WaitForBytes(int peer, Clock::time_point deadline) const;
  void SayThatItLeavesUntold(const TrackerLost& error) const;
  [[noreturn]] void ThrowLost(int peer, int error) const;
  wire::classic::Hello Hello(wire::classic::Command command) const;
  void MeetRingNeighbors(Clock::time_point deadline);
  std::string ReadRecord(int peer, Clock::time_point deadline);
  std::string Name() const;

  Settings settings_;
  /// The time limit for waiting for other ranks. At a job's start, it applies only after the tracker has
  /// named the ranks to link with.
  std::chrono::seconds patience_;
  std::optional<tls::Context> tls_;  ///< the TLS context of the links, if they are encrypted
  tcp::Socket listener_;
  std::string local_host_;
  wire::classic::Assignment assignment_;
  std::map<int, tcp::Stream> links_;            ///< connections, by rank
  std::map<int, wire::Digest> awaited_proofs_;  ///< proofs expected from acceptors, by rank
};

}  // namespace warren
