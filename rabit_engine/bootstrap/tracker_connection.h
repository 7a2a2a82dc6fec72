// A worker's connection to a rabit tracker. The constructor that takes a hello connects, exchanges proofs of
// the job's token if there is one (by TLS with WARREN_TLS=1, otherwise as in wire/authentication.h),
// exchanges magic numbers and sends the hello; the caller then sends and reads the messages of
// wire/classic.h. Works with the trackers of Warren, dmlc-core and XGBoost up to 2.0; the latter two answer
// one worker at a time, so in a large job an answer may take minutes.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "rabit_engine/base/settings.h"
#include "rabit_engine/transport/tcp/stream.h"
#include "wire/classic.h"
#include "wire/membership.h"

namespace warren {

class TrackerConnection {
 public:
  using Clock = std::chrono::steady_clock;
  /// Only connects and exchanges proofs of the token. `connected` is called with the descriptor between these
  /// two steps; an exception from it ends the attempt. `settings` must outlive the connection. Throws like
  /// the other constructor.
  explicit TrackerConnection(const Settings& settings, const std::function<void(int)>& connected = {});
  /// Connects, retrying as often as the settings allow, and sends the hello, directly followed by `more`.
  /// Throws TrackerLost, EngineError or TimedOut, whose messages name the tracker, or LocalShortage if this
  /// process lacks a resource for the connection.
  TrackerConnection(const Settings& settings, const wire::classic::Hello& hello,
                    const std::string& more = {});

  void Send(const std::string& bytes);
  /// Waits for an answer, which the tracker sends when other workers have arrived. Throws TimedOut at the
  /// deadline, TrackerLost if the connection ends, EngineError if the answer is invalid. `what` names the
  /// answer in errors: "this worker's rank".
  wire::classic::Assignment ReadAssignment(const char* what, Clock::time_point deadline);
  wire::classic::LinkPlan ReadLinkPlan(const char* what, Clock::time_point deadline);
  /// Like ReadAssignment, for a string of at most `max_bytes` bytes.
  std::string ReadString(const char* what, std::size_t max_bytes, Clock::time_point deadline);
  /// Returns the tracker's next message about an elastic job (wire/membership.h), or nullopt if none arrives
  /// before the deadline. Throws TrackerLost, or EngineError if the message is invalid.
  std::optional<wire::GenerationMessage> HearOfGenerations(Clock::time_point deadline);
  /// Call this after sending WaitForOthers. Returns true if this rank may leave, false if it must join again.
  /// Throws TimedOut, or TrackerLost if the tracker was lost before it decided.
  bool ReadRelease(Clock::time_point deadline);
  /// Call this after sending a listen port to a Warren tracker. Returns whether the tracker has confirmed
  /// that it saved the port, so that a restarted tracker finds it. Does not wait. Throws TrackerLost if the
  /// connection ended or another message arrived before the confirmation.
  bool HasNoted();
  /// Throws TrackerLost if the connection broke. A regular close by the tracker is not an error.
  void ThrowIfBroken();
  int descriptor() const { return connection_.fd(); }
  /// The address of this host at its end of the connection to the tracker.
  std::string local_host() const { return tcp::Address::Local(connection_.fd()).host(); }

 private:
  void Connect();
  void Encrypt(const tls::Context& tls);
  void Authenticate();
  void ExchangeMagics();
  bool HasReceived(const char* what, Clock::time_point deadline);
  void ThrowIfShort(const char* call, int error) const;
  template <typename Reader, typename Next>
  auto ReadOrNothing(Reader& reader, const Next& next, const char* what, Clock::time_point deadline);
  template <typename Reader, typename Next>
  auto Read(Reader& reader, const Next& next, const char* what, Clock::time_point deadline);

  const Settings& settings_;
  std::string tracker_;  ///< the tracker's address, for messages
  tcp::Stream connection_;
  std::string received_;  ///< bytes received by the last HasReceived
  wire::Reader strings_;
  wire::classic::TrackerStream stream_;
};

/// Vouches to the tracker for the worker `settings.task_id`, over a connection authenticated with the job's
/// token. The worker is about to join from this process with a protocol that cannot prove the token, under
/// the task id TASK#TICKET (wire/vouch.h). Throws like the constructors.
void VouchAtTracker(const Settings& settings, const std::string& ticket);

/// Sends text for the tracker to print. `worker` identifies the sender; its command is set here. If the
/// tracker cannot be reached, prints the rest of the text to stdout and the reason to stderr: a failed print
/// must not end a job.
void PrintAtTracker(const Settings& settings, wire::classic::Hello worker, const std::string& text);

}  // namespace warren
