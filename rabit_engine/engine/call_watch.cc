#include "rabit_engine/engine/call_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <string>
#include <utility>

#include "rabit_engine/base/error.h"
#include "rabit_engine/base/say.h"

namespace warren {
namespace {

// A wait this long may mean that something is wrong; waits while data is moving are shorter.
constexpr std::chrono::milliseconds kPatience{150};
// The interval at which a waiting rank sends its call again to awaited ranks without a link: they may have
// ended since the last time.
constexpr std::chrono::milliseconds kAskAgain{500};
// The time after which a rank counts as not waiting if it has not answered that it is. A waiting rank answers
// within about 200 ms, or publishes its wait in shared memory, unless it has no core to run on.
constexpr std::chrono::seconds kAnswer{2};
// When a wait times out, kQuickAnswer is usually enough to learn which of the other ranks are also waiting.
// If all awaited ranks are waiting, this rank waits until kGrace after the deadline for another rank to
// report the late one.
constexpr std::chrono::milliseconds kQuickAnswer{400};
constexpr std::chrono::milliseconds kGrace{1500};
// A wait record has space for only a few of the awaited ranks; at this interval it changes to the next ones.
constexpr std::chrono::seconds kNextEdges{8};

std::int64_t Nanoseconds(Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}
double Seconds(Clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

}  // namespace

CallWatch::CallWatch(HostSegment* segment, TcpTransport& tcp, const std::string& name,
                     std::chrono::seconds patience, Job* job)
    : segment_(segment),
      tcp_(tcp),
      job_(job),
      search_(tcp.rank(), tcp.world_size(),
              {.shares_memory = [this](int rank) { return SharesMemory(rank); },
               .wait_of = [this](int rank) { return WaitOf(rank); },
               .now = [] { return Seconds(Clock::now()); }}),
      name_(name),
      patience_(patience) {}

void CallWatch::Begin(CallTag& tag, bool only_gives) {
  tag.before = digest_;
  digest_ = DigestWith(tag);
  calls_[tag.sequence % kRememberedCalls] = tag;
  current_ = tag;
  asked_.clear();
  in_messages_ = false;
  if (segment_ == nullptr) return;
  segment_->SayCall(tag);
  if (!only_gives) return;
  // If two ranks receive nothing in their calls, the fence ensures that at least one of them sees the other's
  // call.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  CompareWithHost();
}

const CallTag* CallWatch::Remembered(std::uint32_t sequence) const {
  const CallTag& tag = calls_[sequence % kRememberedCalls];
  return tag.sequence == sequence && sequence != 0 ? &tag : nullptr;
}

bool CallWatch::SharesMemory(int rank) const {
  if (segment_ == nullptr) return false;
  return std::find(segment_->ranks().begin(), segment_->ranks().end(), rank) != segment_->ranks().end();
}

void CallWatch::OnWait(std::span<const Interest> awaited, Clock::time_point since, Clock::time_point looked) {
  on_links_.clear();
  std::copy_if(awaited.begin(), awaited.end(), std::back_inserter(on_links_),
               [this](const Interest& interest) { return !SharesMemory(interest.peer); });
  // While this rank waits in shared memory, nothing else takes the events of its TCP links.
  tcp_.TakeEvents();
  if (tcp_.AnyReady(on_links_)) return;
  tcp_.ThrowIfLost(on_links_);
  tcp_.ThrowIfHostIsSilent();
  LookForLossesOfJob();
  if (current_.sequence != 0) {
    CompareWithHost();
    CompareWithAskers();
  }
  const Clock::time_point now = Clock::now();
  if (now - since < kPatience) return;
  Ask();
  SayWait(awaited, since, looked);
  tcp_.SayThatThisWaits();
  LookForDeadlock(awaited);
  WarnIfLate(awaited, since, now);
}

void CallWatch::LookForLossesOfJob() {
  if (job_ == nullptr) return;
  try {
    job_->LookForLosses();
  } catch (const LostPeer&) {
    // The lost rank may have given up in this communicator; its alarm, which has the reason, may arrive only
    // after the loss has been noticed.
    tcp_.ThrowIfTold();
    throw;
  }
}

void CallWatch::CompareWithHost() {
  if (segment_ == nullptr) return;
  for (int local = 0; local < segment_->local_size(); ++local) {
    const auto theirs = segment_->CallOf(local, current_.sequence);
    if (!theirs || *theirs == current_) continue;
    segment_->ThrowIfCallsDiffer(local, current_.sequence);
    ThrowDifferentCalls(tcp_.rank(), current_, segment_->ranks()[local], *theirs);
  }
}

void CallWatch::CompareWithAskers() {
  for (const auto& [rank, theirs] : tcp_.questions()) {
    const CallTag* const own = Remembered(theirs.sequence);
    if (own != nullptr && *own != theirs) ThrowDifferentCalls(tcp_.rank(), *own, rank, theirs);
  }
}

void CallWatch::Ask() {
  const Clock::time_point now = Clock::now();
  const bool again = now - asked_last_ >= kAskAgain;
  if (again) asked_last_ = now;
  for (const Interest& interest : on_links_) {
    const bool was_asked = std::find(asked_.begin(), asked_.end(), interest.peer) != asked_.end();
    if (was_asked && !(again && !tcp_.IsLinked(interest.peer))) continue;
    if (!was_asked) asked_.push_back(interest.peer);
    tcp_.Ask(interest.peer, current_);
  }
}

// --- ranks that wait for each other ---

std::optional<WaitRecord> CallWatch::WaitOf(int rank) const {
  std::optional<WaitRecord> wait = wait_;
  if (rank != tcp_.rank()) {
    const auto& ranks = segment_->ranks();
    const auto place = std::find(ranks.begin(), ranks.end(), rank);
    wait = segment_->WaitOf(static_cast<int>(place - ranks.begin()));
  }
  const double age = static_cast<double>(Nanoseconds(Clock::now()) - (wait ? wait->renewed : 0)) * 1e-9;
  if (age > DeadlockSearch::kFresh) wait.reset();
  return wait;
}

void CallWatch::SayWait(std::span<const Interest> awaited, Clock::time_point since,
                        Clock::time_point looked) {
  wait_ = {Nanoseconds(since), Nanoseconds(looked)};
  const std::size_t first = (looked - since) / kNextEdges * WaitRecord::kMostEdges;
  for (std::size_t i = 0; i < awaited.size() && wait_.num_edges < WaitRecord::kMostEdges; ++i) {
    const Interest& interest = awaited[(first + i) % awaited.size()];
    if (const auto edge = EdgeOf(tcp_.rank(), interest, LinkWith(interest.peer))) {
      wait_.edges[wait_.num_edges++] = *edge;
    }
  }
  if (segment_ != nullptr) segment_->SayWait(wait_);
}

LinkState CallWatch::LinkWith(int peer) const {
  if (SharesMemory(peer)) return {.shares_memory = true};
  return {.is_linked = tcp_.IsLinked(peer),
          .sent = tcp_.BytesSent(peer),
          .received = tcp_.BytesReceived(peer),
          .is_full = tcp_.IsFull(peer)};
}

void CallWatch::LookForDeadlock(std::span<const Interest> awaited) {
  const auto send = [this](const std::optional<DeadlockSearch::ProbeMessage>& message) {
    if (message) tcp_.Send(message->to, message->probe);
  };
  send(search_.Tick(wait_, in_messages_));
  if (!WaitOf(tcp_.rank())) return;  // the record is too old, since this process was suspended
  for (const auto& [origin, probe] : tcp_.TakeProbes()) {
    const auto own = std::ranges::find(awaited, probe.waiter, &Interest::peer);
    if (!Holds(probe, own == awaited.end() ? nullptr : &*own, LinkWith(probe.waiter))) continue;
    send(search_.Take(probe));
  }
  if (!search_.found().empty()) ThrowDeadlock();
}

void CallWatch::ThrowDeadlock() const {
  std::string circle;
  for (const int rank : search_.found()) circle += fmt::format("rank {} waits for ", rank);
  if (search_.num_found() > search_.found().size()) {
    circle += fmt::format("another, and so on over {} more, of which the last waits for ",
                          search_.num_found() - search_.found().size());
  }
  throw Misuse(fmt::format(
      "rank {}: ranks wait for each other's messages, and none of them can go on: {}rank {}. "
      "Let one of two ranks send first and the other receive first, or do both in one call (SendRecv)",
      tcp_.rank(), circle, tcp_.rank()));
}

// --- late ranks ---

void CallWatch::WarnIfLate(std::span<const Interest> awaited, Clock::time_point since,
                           Clock::time_point now) {
  if (since != warned_since_) {
    warned_since_ = since;
    next_warning_ = since + patience_;
    asked_whether_it_waits_ = {};
    suspect_ = -1;
  }
  if (awaited.empty() || now < next_warning_ - kAnswer) return;
  const int first = awaited.front().peer;
  std::string culprit;
  if (SharesMemory(first)) {
    const int rank = CulpritHere(first);
    if (rank != suspect_) {
      suspect_ = rank;
      suspected_since_ = now;
    }
    if (now < next_warning_ || now - suspected_since_ < kAnswer || rank < 0 || AnotherSpeaksOf(rank)) return;
    culprit = fmt::format("rank {}, on the same host,", rank);
  } else {
    if (asked_whether_it_waits_ == Clock::time_point()) {
      asked_whether_it_waits_ = now;
      return tcp_.AskWhetherItWaits(first);
    }
    if (now < next_warning_ || now - asked_whether_it_waits_ < kAnswer) return;
    asked_whether_it_waits_ = {};
    if (!tcp_.SaysThatItWaits(first)) culprit = tcp_.PeerName(first);
  }
  next_warning_ = since + 2 * (now - since);
  if (culprit.empty()) return;
  const std::string call = in_messages_                               ? "a send or receive"
                           : CountsAreOfMessages(current_.collective) ? std::string(Name(current_.collective))
                                                                      : Describe(current_);
  Say("rabit: rank {} has waited {:.0f} s for {} in {}, in the communicator {}", tcp_.rank(),
      std::chrono::duration<double>(now - since).count(), culprit, call, name_);
}

/// Follows the chain of waiting ranks from `rank` and returns the rank at its end, which is not waiting; -1
/// if the chain leaves this host, is a cycle, or ends in a wait without edges.
int CallWatch::CulpritHere(int rank) const {
  for (int i = 0; i < segment_->local_size(); ++i) {
    const auto wait = WaitOf(rank);
    if (!wait) return rank;
    if (wait->num_edges == 0 || !SharesMemory(wait->edges.front().on)) return -1;
    rank = wait->edges.front().on;
  }
  return -1;
}

/// Whether another rank on this host has waited longer for the same rank, and therefore prints the warning.
bool CallWatch::AnotherSpeaksOf(int culprit) const {
  const auto& ranks = segment_->ranks();
  return std::any_of(ranks.begin(), ranks.end(), [&](int rank) {
    const auto wait = WaitOf(rank);
    return wait && std::pair(wait->since, rank) < std::pair(wait_.since, tcp_.rank()) &&
           CulpritHere(rank) == culprit;
  });
}

int CallWatch::WhoIsLate(std::span<const Interest> awaited, Clock::time_point deadline) {
  const Clock::time_point now = Clock::now();
  if (deadline != missed_deadline_) {
    missed_deadline_ = deadline;
    asked_after_deadline_ = {};
  }
  if (now - deadline >= kGrace) return FirstOf(awaited, tcp_.rank());
  const bool is_asked = asked_after_deadline_ != Clock::time_point();
  for (const Interest& interest : awaited) {
    if (SharesMemory(interest.peer)) {
      if (!WaitOf(interest.peer)) return interest.peer;
    } else if (!is_asked) {
      tcp_.AskWhetherItWaits(interest.peer);
      asked_after_deadline_ = now;
    } else if (now - asked_after_deadline_ >= kQuickAnswer && !tcp_.SaysThatItWaits(interest.peer)) {
      return interest.peer;
    }
  }
  return awaited.empty() ? tcp_.rank() : -1;
}

}  // namespace warren
