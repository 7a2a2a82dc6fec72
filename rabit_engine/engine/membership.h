// The members of a communicator, with the shared memory and the TCP transport that connect them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rabit_engine/base/layout.h"
#include "rabit_engine/base/settings.h"
#include "rabit_engine/bootstrap/bootstrap.h"
#include "rabit_engine/engine/job.h"
#include "rabit_engine/host/host_segment.h"
#include "rabit_engine/transport/tcp/tcp_transport.h"

namespace warren {

/// The listening socket of this rank and its addresses.
struct Listening {
  tcp::Socket socket;
  std::vector<std::string> addresses;  ///< "ip:port", most likely reachable first
};
/// Listens on a free port in the range given by the settings. Throws EngineError.
Listening ListenHere(const Settings& settings);

struct Membership {
  std::vector<int> ranks;  ///< ranks in the job, by rank in the communicator
  int rank = 0;            ///< this rank in the communicator
  HostLayout layout{{}};   ///< the groups of members that share memory
  /// Shared by this rank and the members that share memory with it; nullptr if there are no such members.
  std::shared_ptr<HostSegment> segment;
  /// Addresses peers by their ranks in the job; nullptr if there is only one member.
  std::unique_ptr<TcpTransport> tcp;
};

/// Creates the world: sends this rank's addresses to the other ranks, and finds out which ranks share memory.
/// A collective call. `greetings`: on entry, only this rank's greeting, which must be a single line; on
/// return, the greetings of all ranks, by rank. Fills in `job`. Throws EngineError.
Membership MeetWorld(Bootstrap& bootstrap, Listening listening, const Settings& settings,
                     std::vector<std::string>& greetings, Job& job);

/// This rank's part in forming a group: the rank sends text() to the other members, then calls Join with the
/// texts of all members.
class SubgroupOffer {
 public:
  /// `members`: the members' ranks in the job, in the group's order; `index`: this rank's position in
  /// `members`. `job` must outlive this object. Throws EngineError.
  SubgroupOffer(const Job& job, std::vector<int> members, int index, const Settings& settings);
  const std::string& text() const { return text_; }
  /// Must be called only once. `offers`: the text() of each member. `name`: the group's name, unique in the
  /// job. Throws EngineError; Refused if all members are on one host and no shared memory is left.
  Membership Join(std::span<const std::string> offers, const std::string& name, const Settings& settings);

 private:
  const Job& job_;
  Membership membership_;
  Listening listening_;
  std::string text_;
};

}  // namespace warren
