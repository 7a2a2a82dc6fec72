#include "tracker/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "wire/authentication.h"
#include "wire/classic.h"
#include "wire/collective.h"
#include "wire/dialect.h"
#include "wire/membership.h"
#include "wire/report.h"
#include "wire/vouch.h"

namespace warren::tracker {
namespace {

// The first three bytes of a TLS connection, in the low bytes of a little-endian int32: a handshake record,
// with the version that all versions of TLS begin with.
constexpr std::int32_t kTlsMask = 0xffffff;
constexpr std::int32_t kTlsBegin = 0x010316;

/// Whether a peer requests a rank, as a worker does that joins or recovers. `said`: all bytes from the peer
/// after the magic. Throws wire::ProtocolError if they are malformed.
bool WantsARank(bool is_classic, std::string_view said) {
  if (is_classic) {
    wire::classic::WorkerStream stream;
    stream.Append(said);
    const auto message = stream.Next();
    const auto* hello = message ? std::get_if<wire::classic::Hello>(&*message) : nullptr;
    return hello != nullptr && (hello->command == wire::classic::Command::kStart ||
                                hello->command == wire::classic::Command::kRecover);
  }
  wire::collective::WorkerStream stream;
  stream.Append(said);
  for (auto message = stream.Next(); message; message = stream.Next()) {
    if (std::holds_alternative<wire::collective::Start>(*message)) return true;
  }
  return false;
}

}  // namespace

std::string OwnTask(const JobOptions& options, const std::string& task_id) {
  if (!options.elastic) return task_id;
  const auto [task, generation] = wire::SplitGeneration(task_id);
  if (generation == options.generation && generation > 0) return task;
  if (generation == 0) {
    throw wire::ProtocolError(
        "it names no generation: workers of a job that may lose some of them (--num-workers MIN:MAX) join by warren.xgboost.communicator");
  }
  throw wire::ProtocolError(fmt::format("it belongs to generation {} of this job, and {}", generation,
                                        options.generation > 0
                                            ? fmt::format("generation {} has begun", options.generation)
                                            : "its workers have not come together yet"));
}

Job::Job(const JobOptions& options, TimePoint now)
    : connections_(options.takes_notes), options_(options), admission_(options.admission), now_(now) {
  if (options_.elastic) generations_.emplace(connections_, *options_.elastic, now);
  classic_.emplace(connections_, options_, now);
  collective_.emplace(connections_, options_, now);
}

void Job::TakeOver(const std::vector<Note>& all_notes, TimePoint now) {
  std::vector<Note> notes = all_notes;
  if (generations_) TakeGenerationOver(notes, now);
  const auto closed = std::find_if(notes.rbegin(), notes.rend(),
                                   [](const Note& note) { return note.kind == Note::Kind::kClosed; });
  if (closed != notes.rend()) {
    admission_.Close();
    notes.erase(notes.begin(), closed.base());
  }
  std::erase_if(notes, [this](const Note& note) {
    if (note.kind != Note::Kind::kVouched) return false;
    admission_.Vouch({note.task_id, note.ticket}, note.host);
    return true;
  });
  const auto first_member = std::find_if(notes.begin(), notes.end(),
                                         [](const Note& note) { return note.kind == Note::Kind::kMember; });
  if (first_member != notes.end()) {
    notes.erase(notes.begin(), first_member);  // of workers of the other dialect, which had gone
    collective_->TakeOver(notes, now);
  } else {
    classic_->TakeOver(notes, now);
  }
  if (!generations_ || generations_->number() == 0 || Current().linked()) return;
  generations_->Break("the tracker was started again before all had joined", now);
  BeginJobsOf(0, now);
}

/// Takes over the generations from the notes. Leaves in `notes` only those about the jobs of the current
/// generation, and kClosed.
void Job::TakeGenerationOver(std::vector<Note>& notes, TimePoint now) {
  generations_->TakeOver(notes, now);
  const auto is_beginning = [](const Note& note) { return note.kind == Note::Kind::kGeneration; };
  const auto begun = std::find_if(notes.rbegin(), notes.rend(), is_beginning).base();
  // Notes about earlier generations are obsolete, except kClosed, which applies to the whole job.
  notes.erase(
      std::remove_if(notes.begin(), begun, [](const Note& note) { return note.kind != Note::Kind::kClosed; }),
      begun);
  std::erase_if(notes, [](const Note& note) { return note.kind >= Note::Kind::kGeneration; });
  if (generations_->number() > 0) BeginJobsOf(generations_->number(), now);
}

/// Names the message that the peer has not completed, for the log if the connection ends.
std::string_view Job::Expected(const Inbound& inbound) {
  switch (inbound.step) {
    case Inbound::Step::kMagic:
      return "the magic number";
    case Inbound::Step::kNonce:
      return "its claim to know the job's token";
    case Inbound::Step::kProof:
      return "its proof of the job's token";
    case Inbound::Step::kVouch:
      return "the task that it vouches for";
    case Inbound::Step::kDialect:
      break;
  }
  return "the rank and world size";
}

/// The job of the dialect that the workers speak; the classic job until the first worker asks to be linked.
const DialectJob& Job::Current() const {
  if (collective_->engaged()) return *collective_;
  return *classic_;
}

void Job::Opened(ConnectionId connection, std::string host, std::uint16_t port, TimePoint now) {
  connections_.Open(connection, std::move(host), port, now + kHelloTimeout);
  inbound_[connection].since = now;
  if (connections_.num_pending() > kMaxPendingConnections + 2 * static_cast<std::size_t>(world_size()))
    DropOldestPending();
}

bool Job::MakeRoom(TimePoint now) {
  if (reports_.DropOldest("the process cannot accept more connections", Severity::kDebug)) return true;
  const auto oldest = connections_.OldestPending();
  if (!oldest || now - inbound_.at(*oldest).since < kPendingGrace) return false;
  DropOldestPending();
  return true;
}

void Job::DropOldestPending() {
  const auto oldest = connections_.OldestPending();
  if (oldest)
    Drop(*oldest, "too many connections have not identified themselves, and this one is the oldest");
}

void Job::CountPendingBytes(ConnectionId connection, std::size_t bytes) {
  if (!connections_.IsPending(connection)) return;
  inbound_.at(connection).bytes += bytes;
  pending_bytes_ += bytes;
  if (pending_bytes_ > kMaxPendingBytes) LimitPendingBytes();
}

void Job::ReceivedHandshake(ConnectionId connection, std::size_t bytes) {
  if (!is_over() && connections_.Has(connection)) CountPendingBytes(connection, bytes);
}

/// If the limit is exceeded, drops connections until the pending bytes are at most half of it, so that
/// recounting is rare.
void Job::LimitPendingBytes() {
  std::vector<std::pair<std::size_t, ConnectionId>> senders;
  pending_bytes_ = 0;
  for (const auto& [connection, inbound] : inbound_) {
    if (!connections_.IsPending(connection)) continue;
    senders.emplace_back(inbound.bytes, connection);
    pending_bytes_ += inbound.bytes;
  }
  if (pending_bytes_ <= kMaxPendingBytes) return;
  std::sort(senders.begin(), senders.end());
  for (; pending_bytes_ > kMaxPendingBytes / 2; senders.pop_back()) {
    pending_bytes_ -= senders.back().first;
    Drop(
        senders.back().second,
        fmt::format(
            "it sent {} bytes without identifying itself, more than others; all unidentified connections together may send at most {} MiB",
            senders.back().first, kMaxPendingBytes >> 20));
  }
}

void Job::Received(ConnectionId connection, std::string_view bytes, TimePoint now) {
  // Reports are read even after the job is over: the last ones arrive together with the workers' last
  // messages.
  now_ = now;
  if (reports_.Has(connection)) return reports_.Received(connection, bytes, now);
  if (generations_ && generations_->Has(connection)) {
    generations_->Received(connection, bytes, now);
    return FollowGenerations(now);
  }
  if (is_over() || !connections_.Has(connection)) return;
  const auto found = inbound_.find(connection);
  if (found == inbound_.end()) return;  // it belongs to a worker's error port, which sends nothing
  CountPendingBytes(connection, bytes.size());
  if (!connections_.Has(connection)) return;
  try {
    Inbound& inbound = found->second;
    if (inbound.job == nullptr && !ReadHead(connection, inbound, bytes, now)) return;
    if (inbound.refusal) {
      inbound.received += bytes;
      const auto redeemed = WithTicketRedeemed(connection, inbound);
      if (!redeemed) return;
      inbound.refusal.reset();
      inbound.received.clear();
      return Dispatch(connection, *redeemed, now);
    }
    if (admits_unauthenticated() && connections_.authenticated(connection)) {
      inbound.received += bytes;
      if (WantsARank(inbound.job == &*classic_, inbound.received)) return RequireAuthentication(now);
    }
    Dispatch(connection, bytes, now);
  } catch (const wire::ProtocolError& error) {
    Drop(connection, error.what());
  }
}

/// Passes the bytes to the job of the connection's dialect.
void Job::Dispatch(ConnectionId connection, std::string_view bytes, TimePoint now) {
  try {
    DialectJob& job = *inbound_.at(connection).job;
    if (OtherThan(job).engaged()) throw wire::ProtocolError(RefusalOf(job));
    const bool was_engaged = job.engaged();
    job.Received(connection, bytes, now);
    if (!was_engaged && job.engaged()) DropPendingOf(OtherThan(job));
  } catch (const wire::ProtocolError& error) {
    Drop(connection, error.what());
  }
}

/// Reads the bytes that precede the messages of a dialect. Returns true once the dialect is known; `bytes`
/// then holds the bytes after the magic. Returns false for other connections, whose bytes it passes on.
bool Job::ReadHead(ConnectionId connection, Inbound& inbound, std::string_view& bytes, TimePoint now) {
  inbound.head.Append(bytes);
  if (inbound.step == Inbound::Step::kNonce || inbound.step == Inbound::Step::kProof) {
    if (!ReadAuthentication(connection, inbound)) return false;
  }
  if (inbound.step == Inbound::Step::kVouch) {
    if (const auto vouch = wire::NextVouch(inbound.head)) HandleVouch(connection, *vouch, now);
    return false;
  }
  if (inbound.step == Inbound::Step::kMagic) {
    const auto magic = inbound.head.Int();
    if (!magic) return false;
    if (*magic == wire::kAuthenticationMagic && !connections_.authenticated(connection)) {
      if (!admission_.keys()) {
        throw wire::ProtocolError(fmt::format("it wants to prove a job token ({}), but this tracker has none",
                                              wire::kTokenVariable));
      }
      if (admission_.requires_tls()) {
        throw wire::ProtocolError(
            "it wants to prove the job's token and continue unencrypted, but this job's connections are encrypted (--tls): its environment lacks WARREN_TLS=1");
      }
      inbound.step = Inbound::Step::kNonce;
      if (!ReadAuthentication(connection, inbound)) return false;
      return ReadHead(connection, inbound, bytes = {}, now);
    }
    if (*magic == wire::kVouchMagic && connections_.authenticated(connection)) {
      inbound.step = Inbound::Step::kVouch;
      return ReadHead(connection, inbound, bytes = {}, now);
    }
    RequireUsable(*magic);
    if (const auto why = RefusalOfUnproved(connection)) {
      // The task id is known only after the peer has received the magic number, which reveals nothing.
      const bool may_show_ticket =
          *magic == wire::kMagic && admission_.ExpectsFrom(connections_.host(connection));
      if (!may_show_ticket) throw wire::ProtocolError(*why);
      inbound.refusal = *why;
    }
    if (*magic == wire::kMembershipMagic) {
      generations_->Open(connection);
      generations_->Received(connection, inbound.head.Peek(inbound.head.available()), now);
      FollowGenerations(now);
      return false;
    }
    if (*magic == wire::kReportMagic) {
      reports_.Open(connection, world_size());
      reports_.Received(connection, inbound.head.Peek(inbound.head.available()), now);
      return false;
    }
    connections_.Send(connection, wire::classic::EncodeMagic());
    inbound.step = Inbound::Step::kDialect;
  }
  bytes = inbound.head.Peek(inbound.head.available());
  const auto dialect = wire::DetectDialect(bytes);
  if (!dialect) return false;
  inbound.job = &*classic_;
  if (*dialect == wire::Dialect::kCollective) inbound.job = &*collective_;
  inbound.job->Opened(connection);
  return true;
}

/// Throws wire::ProtocolError unless this is the magic number of a dialect, of reports, or of a membership in
/// this job.
void Job::RequireUsable(std::int32_t magic) const {
  if ((magic & kTlsMask) == kTlsBegin && !admission_.requires_tls()) {
    throw wire::ProtocolError(
        "it wants TLS (WARREN_TLS=1 in its environment), but this tracker was started without --tls");
  }
  if (magic == wire::kMembershipMagic && !generations_) {
    throw wire::ProtocolError(
        "it wants to be a member of an elastic job, but this job has a fixed number of workers: start it with --num-workers MIN:MAX");
  }
  if (magic != wire::kMagic && magic != wire::kReportMagic && magic != wire::kMembershipMagic) {
    throw wire::ProtocolError(
        fmt::format("not a worker: its first four bytes are {:#010x}, expected {:#010x}",
                    static_cast<std::uint32_t>(magic), static_cast<std::uint32_t>(wire::kMagic)));
  }
}

std::optional<std::string> Job::RefusalOfUnproved(ConnectionId connection) const {
  if (connections_.authenticated(connection)) return std::nullopt;
  const bool is_own_user =
      admission_.AsksForUser() && options_.is_own_user && options_.is_own_user(connection);
  return admission_.Refusal(connections_.host(connection), is_own_user);
}

/// Called when a process with the token vouches for a worker that is about to join. From then on, peers with
/// neither the token nor a ticket are not admitted.
void Job::HandleVouch(ConnectionId connection, const wire::Vouch& vouch, TimePoint now) {
  if (!admission_.closed()) RequireAuthentication(now);
  const std::string& host = connections_.host(connection);
  admission_.Vouch(vouch, host);
  connections_.Write(
      {.kind = Note::Kind::kVouched, .task_id = vouch.task_id, .host = host, .ticket = vouch.ticket});
  connections_.Send(connection, wire::Writer().String(wire::kVouched).Take());
  connections_.Close(connection);
}

/// Returns the bytes that the peer has sent, with the ticket in its hello replaced by the plain task id;
/// std::nullopt until the hello is complete. Throws wire::ProtocolError if the peer is not admitted.
std::optional<std::string> Job::WithTicketRedeemed(ConnectionId connection, const Inbound& inbound) {
  const std::string& host = connections_.host(connection);
  const auto plain = [&](auto hello, bool starts) {
    const std::size_t length = Encode(hello).size();
    hello.task_id = admission_.TaskOf(hello.task_id, host, starts, *inbound.refusal);
    connections_.SetAuthenticated(connection);
    return std::pair(Encode(hello), length);
  };
  if (inbound.job == &*classic_) {
    wire::classic::WorkerStream stream;
    stream.Append(inbound.received);
    const auto message = stream.Next();
    if (!message) return std::nullopt;
    const auto& hello = std::get<wire::classic::Hello>(*message);
    const auto [bytes, length] = plain(hello, hello.command == wire::classic::Command::kStart);
    return bytes + inbound.received.substr(length);
  }
  wire::collective::WorkerStream stream;
  stream.Append(inbound.received);
  const auto message = stream.Next();
  if (!message) return std::nullopt;
  const auto& hello = std::get<wire::collective::Hello>(*message);
  const std::string bytes = plain(hello, hello.world_size == -1).first;
  // The worker may have encoded the same values differently, so the length is taken from its message.
  wire::Reader reader;
  reader.Append(inbound.received);
  const auto length = sizeof(std::int32_t) + static_cast<std::size_t>(*reader.Int());
  return bytes + inbound.received.substr(length);
}

void Job::RequireSame(const wire::Digest& shown, const wire::Digest& expected) {
  if (wire::Same(wire::BytesOf(shown), wire::BytesOf(expected))) return;
  throw wire::ProtocolError(fmt::format(
      "it does not know this job's token: it belongs to another job, or its {} is not this tracker's",
      wire::kTokenVariable));
}

/// Returns true once the peer has proved that it knows the token. The tracker's own proof has then been sent.
bool Job::ReadAuthentication(ConnectionId connection, Inbound& inbound) {
  using wire::Party;
  if (inbound.step == Inbound::Step::kNonce) {
    if (inbound.head.available() < sizeof(wire::Nonce) + sizeof(wire::Digest)) return false;
    inbound.worker_nonce = *wire::NextDigest(inbound.head);
    RequireSame(*wire::NextDigest(inbound.head), admission_.keys()->Claim(inbound.worker_nonce));
    inbound.tracker_nonce = admission_.NextNonce();
    connections_.Send(connection, wire::EncodeNonce(inbound.tracker_nonce));
    inbound.step = Inbound::Step::kProof;
  }
  const auto proof = wire::NextDigest(inbound.head);
  if (!proof) return false;
  const auto expected = [&](Party who) {
    return admission_.keys()->Proof(who, inbound.worker_nonce, inbound.tracker_nonce);
  };
  RequireSame(*proof, expected(Party::kWorker));
  connections_.Send(connection, std::string(wire::BytesOf(expected(Party::kTracker))));
  inbound.step = Inbound::Step::kMagic;
  Authenticated(connection);
  return true;
}

void Job::Authenticated(ConnectionId connection) {
  if (!is_over() && connections_.Has(connection)) connections_.SetAuthenticated(connection);
}

/// Called when the first authenticated worker requests a rank, or the first worker is vouched for. From then
/// on, unauthenticated peers are dropped. The job starts over without the workers that have already joined;
/// what authenticated peers have sent is handled again.
void Job::RequireAuthentication(TimePoint now) {
  admission_.Close();
  if (classic_->begun() || collective_->begun()) {
    connections_.Log(
        Severity::kWarning,
        fmt::format(
            "workers that did not prove the job's token ({}) had joined this job before the first one that did; they are dropped, and the job starts over",
            wire::kTokenVariable));
  }
  std::vector<ConnectionId> ours;
  for (const auto& [connection, inbound] : inbound_) {
    if (!connections_.Has(connection)) continue;
    if (connections_.authenticated(connection)) {
      if (inbound.job != nullptr) ours.push_back(connection);
      continue;
    }
    const std::string refusal = *admission_.Refusal(connections_.host(connection), false);
    if (reports_.Has(connection)) {
      reports_.Drop(connection, refusal);
    } else if (generations_ && generations_->Has(connection)) {
      generations_->Drop(connection, refusal, now);
    } else if (inbound.job != nullptr || inbound.step == Inbound::Step::kDialect) {
      connections_.LogDrop(connection, refusal);
      connections_.Close(connection);
    }
  }
  collective_->Abandon();
  classic_.emplace(connections_, options_, now);
  collective_.emplace(connections_, options_, now);
  connections_.Write({.kind = Note::Kind::kClosed});
  std::sort(ours.begin(), ours.end());
  for (const ConnectionId connection : ours) inbound_.at(connection).job->Opened(connection);
  for (const ConnectionId connection : ours) {
    const std::string received = std::exchange(inbound_.at(connection).received, {});
    Dispatch(connection, received, now);
  }
}

const DialectJob& Job::OtherThan(const DialectJob& job) const {
  return &job == &*classic_ ? static_cast<const DialectJob&>(*collective_) : *classic_;
}

std::string Job::RefusalOf(const DialectJob& job) const {
  constexpr std::string_view kClassic = "the classic dialect (rabit, XGBoost up to 2.0)";
  constexpr std::string_view kCollective = "the collective dialect (XGBoost 2.1 and later)";
  const bool is_classic = &job == &*classic_;
  return fmt::format(
      "it speaks {}, but the other workers of this job speak {}: all workers of a job need the same version of XGBoost",
      is_classic ? kClassic : kCollective, is_classic ? kCollective : kClassic);
}

/// Drops the pending peers of this job's dialect. Called when the first worker of the other dialect asks to
/// be linked.
void Job::DropPendingOf(const DialectJob& job) {
  for (const auto& [connection, inbound] : inbound_) {
    if (inbound.job == &job && connections_.Has(connection)) Drop(connection, RefusalOf(job));
  }
}

void Job::Connected(ConnectionId connection) {
  if (connections_.Has(connection)) collective_->Connected(connection);
}

void Job::Closed(ConnectionId connection, std::string_view why, TimePoint now) {
  const auto found = inbound_.find(connection);
  if (!connections_.Has(connection)) return;
  now_ = now;
  if (reports_.Has(connection)) return reports_.Closed(connection);
  if (generations_ && generations_->Has(connection)) {
    generations_->Closed(connection, why, now);
    return FollowGenerations(now);
  }
  if (found == inbound_.end()) {
    collective_->Closed(connection, why, now);  // a connection that the tracker has made
  } else if (found->second.job != nullptr) {
    found->second.job->Closed(connection, why, now);
  } else {
    Drop(connection, fmt::format("{}, expected {}", why, Expected(found->second)));
  }
}

void Job::Drop(ConnectionId connection, const std::string& reason) {
  DialectJob* const job = inbound_.at(connection).job;
  if (job != nullptr) {
    job->Drop(connection, reason);
  } else {
    connections_.LogDrop(connection, reason);
    connections_.Close(connection);
  }
}

/// Must be called after each event of generations_. If a generation has been formed, begins new jobs for its
/// members, and tells them to join. If the generation breaks before all members have joined, or some but not
/// all members leave it before that (e.g. because a member was asked to end), ends the jobs, so that the
/// others do not wait for the missing members.
void Job::FollowGenerations(TimePoint now) {
  const bool formed = generations_->TakeFormed();
  if (!formed && options_.generation > 0 && !Current().begun()) generations_->BreakIfOneHasLeft(now);
  if (!formed && !(generations_->broken() && options_.generation > 0 && !Current().begun())) return;
  collective_->Abandon();
  for (const auto& [connection, inbound] : inbound_) {
    if (inbound.job != nullptr && connections_.Has(connection)) connections_.Close(connection);
  }
  BeginJobsOf(formed ? generations_->number() : 0, now);
  if (formed) generations_->Announce(now);
}

/// Begins new jobs in both dialects for this generation; 0: jobs that no worker can join.
void Job::BeginJobsOf(int generation, TimePoint now) {
  options_.num_workers = std::max(1, generations_->size());  // 0 if a tracker died before noting members
  options_.generation = generation;
  classic_.emplace(connections_, options_, now);
  collective_.emplace(connections_, options_, now);
}

void Job::Expect(int num_workers, TimePoint now) {
  if (!generations_) return;
  generations_->Expect(num_workers, now);
  FollowGenerations(now);
}

std::string Job::DescribeMissing() const {
  return generations_ && (generations_->awaits_return() || !Current().engaged())
             ? generations_->Describe()
             : Current().DescribeMissing();
}

std::vector<Action> Job::TakeActions() {
  std::vector<Action> actions = connections_.TakeActions();
  if (generations_) {
    // The end of a generation is not the end of the job.
    for (const Action& action : actions) {
      const auto* broken = std::get_if<Broken>(&action);
      const auto* finished = std::get_if<Finished>(&action);
      if (broken != nullptr) generations_->Break(broken->story, now_);
      if (finished != nullptr && !finished->failure.empty()) generations_->Break(finished->failure, now_);
    }
    std::erase_if(actions, [](const Action& action) {
      return std::holds_alternative<Broken>(action) || std::holds_alternative<Finished>(action);
    });
    FollowGenerations(now_);
    if (const auto end = generations_->TakeEnd()) connections_.Add(Finished{*end});
    for (Action& more : connections_.TakeActions()) actions.push_back(std::move(more));
  }
  for (const Action& action : actions) {
    if (const auto* close = std::get_if<Close>(&action)) inbound_.erase(close->connection);
  }
  return actions;
}

void Job::WaitAnew(TimePoint now) {
  classic_->WaitAnew(now);
  collective_->WaitAnew(now);
  if (generations_) generations_->WaitAnew(now);
}

void Job::TaskFailed(const std::string& task_id, const std::string& how, TimePoint now) {
  collective_->TaskFailed(task_id, how, now);
  if (!generations_) return;
  generations_->TaskFailed(task_id, how, now);
  FollowGenerations(now);
}

void Job::Tick(TimePoint now) {
  if (is_over()) return;
  now_ = now;
  while (const auto late = connections_.FirstLate(now)) Closed(*late, "it was silent for too long", now);
  if (generations_) {
    generations_->Tick(now);
    FollowGenerations(now);
  }
  if (generations_ && options_.generation == 0) return;
  if (collective_->engaged()) {
    collective_->Tick(now);
  } else {
    classic_->Tick(now);
  }
}

std::optional<TimePoint> Job::NextDeadline() const {
  if (is_over()) return std::nullopt;
  std::optional<TimePoint> next = connections_.NextDeadline();
  const auto consider = [&](const std::optional<TimePoint>& time) {
    if (time) next = std::min(next.value_or(*time), *time);
  };
  // Between generations, there are no workers for the jobs to wait for.
  if (!generations_ || options_.generation > 0) consider(Current().NextDeadline());
  if (generations_) consider(generations_->NextDeadline());
  return next;
}

}  // namespace warren::tracker
