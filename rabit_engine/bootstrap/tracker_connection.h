// One conversation with a rabit tracker, as the worker has it: connect, prove the job's token to each other
// if there is one (by TLS with WARREN_TLS=1, else wire/authentication.h), exchange magics, say hello; then
// the caller sends and reads what wire/classic.h describes. Works with our tracker, dmlc-core's and
// XGBoost's; the latter two answer one worker at a time, so an answer may be minutes away in a large job.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "rabit_engine/base/settings.h"
#include "rabit_engine/transport/tcp/stream.h"
#include "wire/classic.h"

namespace warren {

class TrackerConnection {
 public:
  using Clock = std::chrono::steady_clock;
  /// Connects and proves the token, and no more. Throws as the next. `connected` is called between the two,
  /// with the descriptor; what it throws ends the attempt.
  explicit TrackerConnection(const Settings& settings, const std::function<void(int)>& connected = {});
  /// Connects, as often as the settings allow, and says hello. Throws TrackerLost, EngineError or TimedOut
  /// that names the tracker and what to do, LocalShortage where this process is kept from connecting. `more`
  /// follows the hello at once.
  TrackerConnection(const Settings& settings, const wire::classic::Hello& hello,
                    const std::string& more = {});

  void Send(const std::string& bytes);
  /// The tracker answers when other workers have come: waits for them until the deadline, and as long as the
  /// tracker keeps the connection. `what` is the answer's name in errors: "this worker's rank".
  wire::classic::Assignment ReadAssignment(const char* what, Clock::time_point deadline);
  wire::classic::LinkPlan ReadLinkPlan(const char* what, Clock::time_point deadline);
  /// A string that the tracker sends. `what` is its name in errors.
  std::string ReadString(const char* what, std::size_t max_bytes, Clock::time_point deadline);
  /// After WaitForOthers: true when this rank may leave, false when it is called back. Throws TrackerLost
  /// when the tracker was about to say which, TimedOut.
  bool ReadRelease(Clock::time_point deadline);
  /// After a listen port, where the tracker is Warren's: whether it has said that the tracker which would
  /// take its place knows the port. Does not wait. Throws TrackerLost when the connection ended before.
  bool HasNoted();
  /// Throws TrackerLost when the tracker's end of the connection broke. (That it closed is no news.)
  void ThrowIfBroken();
  int descriptor() const { return connection_.fd(); }
  /// The address of this host that the tracker sees.
  std::string local_host() const { return tcp::Address::Local(connection_.fd()).host(); }

 private:
  void Connect();
  void Encrypt(const tls::Context& tls);
  void Authenticate();
  void ExchangeMagics();
  void Receive(const char* what, Clock::time_point deadline);
  void ThrowIfShort(const char* call, int error) const;
  template <typename Message>
  Message Read(std::optional<Message> (wire::classic::TrackerStream::*next)(), const char* what,
               Clock::time_point deadline);

  const Settings& settings_;
  std::string tracker_;  ///< for messages
  tcp::Stream connection_;
  std::string received_;  ///< by the last Receive
  wire::Reader strings_;
  wire::classic::TrackerStream stream_;
};

/// Vouches to the tracker, over a connection that proves the job's token, for the worker `settings.task_id`
/// that is about to join from this process by a protocol without one, under the name TASK#`ticket`
/// (wire/vouch.h). Throws as the constructors.
void VouchAtTracker(const Settings& settings, const std::string& ticket);

/// Has the tracker print the text, as it is; `worker` says who asks (its command is set here). Text that the
/// tracker cannot take still reaches the user, by stdout and with a line on stderr: a line for him is not
/// worth a job.
void PrintAtTracker(const Settings& settings, wire::classic::Hello worker, const std::string& text);

}  // namespace warren
