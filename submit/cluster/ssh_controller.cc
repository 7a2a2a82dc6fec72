#include "submit/cluster/ssh_controller.h"

#include <fmt/format.h>

#include <algorithm>

#include "submit/cluster/script.h"
#include "submit/output/last_line.h"
#include "submit/process/watchdog.h"

namespace warren::submit {
namespace {

/// The exit code of ssh if a connection is lost or cannot be made.
constexpr int kSshFailed = 255;
/// Number of bytes kept from the end of the standard error of ssh and its process.
constexpr std::size_t kSshWordsBytes = 2000;

std::string HintFor(std::string_view words) {
  if (words.find("Host key verification failed") != std::string_view::npos) {
    return "; its key is unknown: connect once by hand, or see --ssh-host-keys";
  }
  if (words.find("Permission denied") != std::string_view::npos) {
    return "; a password cannot be entered here: make sure that `ssh -o BatchMode=yes` can log in (ssh-copy-id, ssh-agent)";
  }
  return {};
}

}  // namespace

SshController::SshController(std::vector<SshHost> hosts, std::vector<std::size_t> places,
                             std::string job_mark, std::string copies_to, bool copies_when_used)
    : places_(std::move(places)),
      job_mark_(std::move(job_mark)),
      copies_to_(std::move(copies_to)),
      copies_when_used_(copies_when_used) {
  for (SshHost& host : hosts) hosts_.push_back({std::move(host)});
}

// --- copies ----------------------------------------------------------------------------------------------

void SshController::Prepare() {
  stopping_ = false;
  kill_at_.reset();
  to_copy_.clear();
  copied_ = 0;
  copy_failed_ = false;
  for (HostState& host : hosts_) host.files = Files::kMissing;
  if (copies_to_.empty() || copies_when_used_) return Do(HostsReady{});
  for (std::size_t host = 0; host < hosts_.size(); ++host) AskForCopy(host);
}

void SshController::AskForCopy(std::size_t host) {
  hosts_[host].files = Files::kComing;
  to_copy_.push_back(host);
  CopyAll();
}

void SshController::CopyAll() {
  for (; copying_ < kCopyingAtOnce && !to_copy_.empty(); to_copy_.pop_front()) {
    ++copying_;
    Do(CopyToHost{to_copy_.front()});
  }
}

void SshController::CopyEnded(std::size_t host, const ExitStatus& status, const std::string& said) {
  --copying_;
  if (stopping_ || copy_failed_) return;
  const std::string& name = hosts_[host].host.name;
  if (!status.ok()) {
    const std::string words = LastLine(said);
    return OnCopyFailed(
        host, fmt::format("the current directory could not be copied to {} on {}: rsync {}{}{}", copies_to_,
                          name, status.Describe(), words.empty() ? "" : ": " + words, HintFor(said)));
  }
  hosts_[host].files = Files::kThere;
  ++copied_;
  Say(Severity::kInfo,
      fmt::format("copied the current directory to {} on {}{}", copies_to_, name,
                  copies_when_used_ ? "" : fmt::format(" ({} of {} hosts)", copied_, hosts_.size())));
  CopyAll();
  if (copies_when_used_) return ConnectNext(host);
  if (copying_ == 0) Do(HostsReady{});
}

/// Handles a failed copy. In an elastic job, only the processes waiting for the host fail; any other job
/// cannot continue.
void SshController::OnCopyFailed(std::size_t host, const std::string& why) {
  if (!copies_when_used_) {
    copy_failed_ = true;
    return Tell(JobTroubled{why});
  }
  HostState& state = hosts_[host];
  state.files = Files::kMissing;
  for (const SshId ssh : std::exchange(state.waiting, {})) {
    ExitStatus status{kSshFailed, 0, false, fmt::format("could not be started: {}", why)};
    status.host_lost = true;
    Finish(ssh, status);
  }
  CopyAll();
}

void SshController::CopyFailed(const std::string& why) {
  --copying_;
  if (!std::exchange(copy_failed_, true)) Tell(JobTroubled{fmt::format("--sync-dst-dir: {}", why)});
}

// --- starting --------------------------------------------------------------------------------------------

/// The number of a host's slots that are not assigned to a process, whether the process runs or not.
std::size_t SshController::FreeSlots(std::size_t host) const {
  const auto taken = std::count(places_.begin(), places_.end(), host);
  const auto slots = static_cast<std::ptrdiff_t>(hosts_[host].host.slots);
  return static_cast<std::size_t>(std::max<std::ptrdiff_t>(slots - taken, 0));
}

std::size_t SshController::HostFor(std::size_t place, TimePoint now) {
  const std::size_t own = places_[place];
  const auto is_left_out = [&](std::size_t host) { return losses_.IsLeftOut(hosts_[host].host.name, now); };
  if (!hosts_[own].gone && is_left_out(own)) {
    for (std::size_t host = 0; host < hosts_.size(); ++host) {
      if (hosts_[host].gone || is_left_out(host) || FreeSlots(host) == 0) continue;
      Say(Severity::kWarning, fmt::format("{}: one of them moves to {}", LossesStory(hosts_[own].host.name),
                                          hosts_[host].host.name));
      return places_[place] = host;
    }
  }
  if (!hosts_[own].gone) return own;
  const auto load = [&](std::size_t host) {
    return static_cast<double>(hosts_[host].running) / hosts_[host].host.slots;
  };
  std::size_t best = own;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (!hosts_[i].gone && (best == own || load(i) < load(best))) best = i;
  }
  return best;
}

void SshController::Start(std::size_t index, std::size_t host, std::string script, TimePoint now) {
  if (!beat_at_) beat_at_ = now + kBeatInterval;
  const SshId ssh = ++last_ssh_;
  sessions_.emplace(ssh, Session{index, host, std::move(script), AgentMessageReader(job_mark_)});
  ++hosts_[host].running;
  hosts_[host].waiting.push_back(ssh);
  if (AwaitsFiles(hosts_[host]) && hosts_[host].files == Files::kMissing) AskForCopy(host);
  ConnectNext(host);
}

void SshController::ConnectNext(std::size_t host) {
  HostState& state = hosts_[host];
  if (AwaitsFiles(state)) return;
  while (state.connecting < kConnectingAtOnce && !state.waiting.empty()) {
    const SshId ssh = state.waiting.front();
    state.waiting.pop_front();
    Session& session = sessions_.at(ssh);
    session.connecting = true;
    ++state.connecting;
    Do(ConnectSsh{ssh, host, std::exchange(session.script, {})});
  }
}

void SshController::Connected(Session& session) {
  if (!std::exchange(session.connecting, false)) return;
  --hosts_[session.host].connecting;
  ConnectNext(session.host);
}

// --- what the scripts write ------------------------------------------------------------------------------

void SshController::Wrote(SshId ssh, Stream stream, std::string_view bytes) {
  Session& session = sessions_.at(ssh);
  if (stream == Stream::kOut) return Tell(ProcessWrote{session.index, stream, std::string(bytes)});
  session.messages.Append(
      bytes,
      [&](std::string_view text) {
        AppendToTail(session.words, text, kSshWordsBytes);
        Tell(ProcessWrote{session.index, stream, std::string(text)});
      },
      [&](const AgentMessage& message) { OnMessage(ssh, session, message); });
}

void SshController::OnMessage(SshId ssh, Session& session, const AgentMessage& message) {
  if (message.kind == "cores" && !session.began) {
    Do(SendCores{ssh, session.index, session.host, message.text});
  } else if (message.kind == "start") {
    Started where = ParseStart(message.text);
    where.host = hosts_[session.host].host.name;  // the name given by the user, not the host's own name
    session.began = true;
    session.words.clear();
    Tell(ProcessLocated{session.index, where});
    Connected(session);
  } else if (message.kind == "usage") {
    if (const auto sample = ParseUsage(message.text)) Tell(ProcessSampled{session.index, *sample});
  } else if (message.kind == "stack" || message.kind == "stacks") {
    Do(StacksArrived{message});
  } else if (message.kind == "exit") {
    session.status = ParseEnd(message.text);
  } else if (message.kind == "fail") {
    session.status = ExitStatus{1, 0, false, fmt::format("could not be started: {}", message.text)};
  }
}

void SshController::AskToLeave(std::size_t index) {
  for (const auto& [ssh, session] : sessions_) {
    if (session.index != index) continue;
    if (session.began) return Do(SendLine{ssh, "leave\n"});
    if (std::erase(hosts_[session.host].waiting, ssh) == 0) return Do(StopSsh{ssh});
    return Finish(ssh, kStopped);
  }
}

bool SshController::AskForStacks(std::size_t index) {
  for (const auto& [ssh, session] : sessions_) {
    if (session.index != index || !session.began) continue;
    Do(SendLine{ssh, "stacks\n"});
    return true;
  }
  return false;
}

// --- ends ------------------------------------------------------------------------------------------------

void SshController::Exited(SshId ssh, const ExitStatus& status, TimePoint now) {
  Session& session = sessions_.at(ssh);
  const bool was_killed = session.status && session.status->signal != 0;
  if (was_killed && !stopping_) losses_.Add(hosts_[session.host].host.name, false, now);
  session.messages.Finish([&](std::string_view text) {
    Tell(ProcessWrote{session.index, Stream::kErr, std::string(text)});
  });
  Finish(ssh, session.status ? *session.status : Explain(session, status));
}

void SshController::NotConnected(SshId ssh, const ExitStatus& status) {
  Finish(ssh, status);
}

void SshController::Finish(SshId ssh, const ExitStatus& status) {
  Session& session = sessions_.at(ssh);
  const std::size_t index = session.index;
  Connected(session);
  --hosts_[session.host].running;
  sessions_.erase(ssh);
  Tell(ProcessExited{index, status});
}

/// The status of a process whose ssh ended before the host reported how the process ended. Marks the host as
/// gone, unless all processes are being stopped.
ExitStatus SshController::Explain(const Session& session, const ExitStatus& status) {
  HostState& state = hosts_[session.host];
  const std::string words = LastLine(session.words);
  const std::string what = words.empty() ? fmt::format("ssh {}", status.Describe()) : words;
  ExitStatus explained = status;
  if (explained.ok()) explained.code = kSshFailed;
  explained.host_lost = true;
  if (!stopping_) state.gone = true;
  explained.story =
      session.began ? fmt::format("was lost with the connection to {} ({})", state.host.name, what)
                    : fmt::format("could not be started on {}: {}{}", state.host.name, what, HintFor(what));
  return explained;
}

void SshController::Stop(TimePoint now) {
  stopping_ = true;
  kill_at_ = now + kStopGrace + kLastWordsPatience;
  Do(StopCopies{});
  to_copy_.clear();
  for (HostState& state : hosts_) {
    for (const SshId ssh : std::exchange(state.waiting, {})) {
      Finish(ssh, kStopped);
    }
  }
  for (const auto& [ssh, session] : sessions_) {
    if (session.began) {
      Do(EndInput{ssh});
    } else {
      Do(StopSsh{ssh});
    }
  }
}

// --- time ------------------------------------------------------------------------------------------------

void SshController::Tick(TimePoint now) {
  if (kill_at_ && now >= *kill_at_) {
    kill_at_.reset();
    if (!sessions_.empty() || copying_ > 0) Do(KillSshs{});
  }
  if (!beat_at_ || now < *beat_at_) return;
  beat_at_.reset();
  if (!sessions_.empty()) beat_at_ = now + kBeatInterval;
  for (const auto& [ssh, session] : sessions_) {
    if (session.began) Do(SendLine{ssh, "\n"});
  }
}

std::optional<TimePoint> SshController::NextDeadline() const {
  if (!kill_at_ || !beat_at_) return kill_at_ ? kill_at_ : beat_at_;
  return std::min(*kill_at_, *beat_at_);
}

}  // namespace warren::submit
