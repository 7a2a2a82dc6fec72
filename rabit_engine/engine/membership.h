// Who the members of a communicator are, and by what means they reach each other.
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

/// Where this rank accepts links.
struct Listening {
  tcp::Socket socket;
  std::vector<std::string> addresses;  ///< "ip:port", the likeliest to be reached first
};
/// At a port of the kernel's choice. Throws EngineError.
Listening ListenHere();

struct Membership {
  std::vector<int> ranks;                ///< of the job, by rank in the communicator
  int rank = 0;                          ///< this one's in the communicator
  HostLayout layout{{}};                 ///< who shares memory, by rank in the communicator
  std::shared_ptr<HostSegment> segment;  ///< of those here; none for who is alone on its host
  std::unique_ptr<TcpTransport> tcp;     ///< numbers are those of the job; none for who is alone
};

/// The world: tells all others of the bootstrap where this rank is and finds out who shares memory with whom.
/// All ranks call it together. `greetings`: a word of each rank's to all others, by rank; this one's is
/// there. Fills in `job`.
Membership MeetWorld(Bootstrap& bootstrap, Listening listening, const Settings& settings,
                     std::vector<std::string>& greetings, Job& job);

/// What a rank tells the others of its parent communicator about a group that it is to be in.
class SubgroupOffer {
 public:
  /// `members`: the ranks of the job that are in the group, in the group's order; `index`: this one's.
  SubgroupOffer(const Job& job, std::vector<int> members, int index);
  const std::string& text() const { return text_; }
  /// `offers`: what each member has told. `name`: of the group, different for all groups of the job.
  Membership Join(std::span<const std::string> offers, const std::string& name, const Settings& settings);

 private:
  const Job& job_;
  Membership membership_;
  Listening listening_;
  std::string text_;
};

}  // namespace warren
