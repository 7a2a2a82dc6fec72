// Decides how to start, watch and end processes that each have their own ssh client (ssh.h). Chooses the host
// of each process, limits the number of simultaneous connections and copies, and determines how each process
// has ended, from the report of its script (agent_messages.h) or, if the connection broke, from the output of
// ssh.
//
// Inputs, some with the time: the job requests the preparation of the hosts (Prepare), a process (Start) or
// the end of all processes (Stop, Kill); results of copies (CopyEnded, CopyFailed); output and end of each
// ssh (Wrote, Exited, NotConnected); time has passed (Tick). Outputs, in order, through TakeActions: copies
// and ssh clients to start and stop, lines for the scripts, and reports to the job of where each process runs
// and how it ended.
//
// In an elastic job (copies_when_used), hosts may be added (AddHost), the caller decides where each process
// runs, and a process may be asked to leave (AskToLeave). The files are copied to a host when it is first
// used.
//
// After each Start of a process, ProcessExited follows exactly once. In a job that is not elastic, a host
// that could not be reached, or to which a connection was lost, gets no more processes as long as other hosts
// remain, and processes that are killed repeatedly on a host move to hosts with free slots.
//
// A state machine without I/O: processes and clocks are in ssh.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "submit/cluster/agent_messages.h"
#include "submit/cluster/cluster_event.h"
#include "submit/cluster/host_losses.h"

namespace warren::submit {

/// The maximum number of connections to one host that are being made at a time. By default, sshd drops some
/// if there are more than 10 (its option MaxStartups).
inline constexpr int kConnectingAtOnce = 8;
/// The maximum number of hosts to which files are copied at a time.
inline constexpr std::size_t kCopyingAtOnce = 16;

/// Copy the current directory to this host, and then call CopyEnded or, if rsync cannot be started,
/// CopyFailed.
struct CopyToHost {
  std::size_t host;
};
struct StopCopies {};
/// All hosts are prepared, so that Start may be called.
struct HostsReady {};

using SshId = std::uint64_t;
/// Connect to the host and pass the script to its shell. Call Exited when ssh has ended or, if ssh cannot be
/// started, NotConnected.
struct ConnectSsh {
  SshId ssh;
  std::size_t host;
  std::string script;
};
/// Choose the cores of a process from its host's report, and send them to its script, which waits for them.
struct SendCores {
  SshId ssh;
  std::size_t index;
  std::size_t host;
  std::string report;
};
struct SendLine {
  SshId ssh;
  std::string line;  ///< with its newline
};
/// Close the script's input. The script then ends its process, whose last output still arrives.
struct EndInput {
  SshId ssh;
};
/// Send SIGTERM to an ssh client whose process has not started.
struct StopSsh {
  SshId ssh;
};
/// Kill all ssh clients and all copies immediately.
struct KillSshs {};
/// The script has sent a message with stacks, as AskForStacks requested.
struct StacksArrived {
  AgentMessage message;
};
using SshAction = std::variant<CopyToHost, StopCopies, HostsReady, ConnectSsh, SendCores, SendLine, EndInput,
                               StopSsh, KillSshs, StacksArrived, ClusterEvent>;

struct SshHost {
  std::string name;
  int slots = 1;
};

class SshController : public ActionQueue<SshAction> {
 public:
  /// `places`: the index of the host for each slot. `copies_to`: the directory on each host into which the
  /// files are copied; empty if nothing is copied. `copies_when_used`: whether to copy the files to a host
  /// only when the first process is to be started there.
  SshController(std::vector<SshHost> hosts, std::vector<std::size_t> places, std::string job_mark,
                std::string copies_to, bool copies_when_used = false);

  /// Adds a host, whose index is the previous number of hosts.
  void AddHost(SshHost host) { hosts_.push_back({std::move(host)}); }

  /// Prepares the hosts for the next start of the job; the action HostsReady follows, or JobTroubled.
  void Prepare();
  /// The host on which to start a process, in a job that is not elastic: the host of its slot or, if that
  /// host is gone, the host with the lowest load. If processes have repeatedly been killed on the slot's
  /// host, the slot moves permanently to a host with a free slot, if there is one.
  std::size_t HostFor(std::size_t place, TimePoint now);
  /// `index`: the process's index in the plan.
  void Start(std::size_t index, std::size_t host, std::string script, TimePoint now);
  void Stop(TimePoint now);
  void Kill() { Do(KillSshs{}); }
  /// Sends the process SIGTERM, or cancels its start if it has not started yet. Its end is reported like any
  /// other.
  void AskToLeave(std::size_t index);
  /// Makes the script report the stacks of its process. Returns false if the process is not running.
  bool AskForStacks(std::size_t index);

  /// `said`: the end of rsync's output.
  void CopyEnded(std::size_t host, const ExitStatus& status, const std::string& said);
  void CopyFailed(const std::string& why);
  void Wrote(SshId ssh, Stream stream, std::string_view bytes);
  void Exited(SshId ssh, const ExitStatus& status, TimePoint now);
  /// Call if ssh could not be started.
  void NotConnected(SshId ssh, const ExitStatus& status);
  void Tick(TimePoint now);
  /// When Tick must next be called, if ever.
  std::optional<TimePoint> NextDeadline() const;

 private:
  enum class Files { kMissing, kComing, kThere };
  struct HostState {
    SshHost host;
    int connecting = 0;
    int running = 0;
    bool gone = false;  ///< whether the host could not be reached or a connection to it was lost
    Files files = Files::kMissing;
    std::deque<SshId> waiting = {};
  };
  /// A process on a host, and its ssh client.
  struct Session {
    std::size_t index;
    std::size_t host;
    std::string script;
    AgentMessageReader messages;
    bool connecting = false;
    bool began = false;                     ///< whether the process has started
    std::optional<ExitStatus> status = {};  ///< how the process ended, according to the script
    /// The end of the standard error of ssh and the process; cleared when the process starts.
    std::string words = {};
  };

  void CopyAll();
  void OnCopyFailed(std::size_t host, const std::string& why);
  bool AwaitsFiles(const HostState& host) const {
    return copies_when_used_ && !copies_to_.empty() && host.files != Files::kThere;
  }
  void AskForCopy(std::size_t host);
  std::size_t FreeSlots(std::size_t host) const;
  void ConnectNext(std::size_t host);
  void Connected(Session& session);
  void OnMessage(SshId ssh, Session& session, const AgentMessage& message);
  void Finish(SshId ssh, const ExitStatus& status);
  ExitStatus Explain(const Session& session, const ExitStatus& status);

  std::vector<HostState> hosts_;
  std::vector<std::size_t> places_;
  std::string job_mark_;
  std::map<SshId, Session> sessions_;
  SshId last_ssh_ = 0;

  std::string copies_to_;
  bool copies_when_used_;
  std::deque<std::size_t> to_copy_;
  std::size_t copying_ = 0;
  std::size_t copied_ = 0;
  bool copy_failed_ = false;

  HostLosses losses_;  ///< processes killed on each host; read only by HostFor
  bool stopping_ = false;
  std::optional<TimePoint> kill_at_;
  std::optional<TimePoint> beat_at_;
};

}  // namespace warren::submit
