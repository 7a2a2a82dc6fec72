#include "tracker/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "wire/classic.h"
#include "wire/collective.h"
#include "wire/dialect.h"
#include "wire/introduction.h"

namespace warren::tracker {
namespace {

// The first bytes of a connection with TLS: a handshake's record, of the version that all versions begin
// with.
constexpr std::int32_t kTlsMask = 0xffffff;
constexpr std::int32_t kTlsBegin = 0x010316;

/// Whether this is the hello of a worker that joins, or comes back. Throws ProtocolError.
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

Job::Job(const JobOptions& options, TimePoint now) : options_(options), admission_(options.admission) {
  classic_.emplace(desk_, options_, now);
  collective_.emplace(desk_, options_, now);
}

void Job::TakeOver(const std::vector<Note>& all_notes, TimePoint now) {
  std::vector<Note> notes = all_notes;
  const auto closed = std::find_if(notes.rbegin(), notes.rend(),
                                   [](const Note& note) { return note.kind == Note::Kind::kClosed; });
  if (closed != notes.rend()) {
    admission_.Close();
    notes.erase(notes.begin(), closed.base());
  }
  const bool collective = std::any_of(notes.begin(), notes.end(),
                                      [](const Note& note) { return note.kind == Note::Kind::kMember; });
  if (collective) {
    collective_->TakeOver(notes, now);
  } else {
    classic_->TakeOver(notes, now);
  }
}

/// What a peer that falls silent now still owes.
std::string_view Job::Expected(const Caller& caller) {
  switch (caller.step) {
    case Caller::Step::kMagic:
      return "the magic number";
    case Caller::Step::kNonce:
      return "its claim to know the job's token";
    case Caller::Step::kProof:
      return "its proof of the job's token";
    case Caller::Step::kDialect:
      break;
  }
  return "the rank and world size";
}

/// The one whose workers have come; before that it does not matter.
const DialectJob& Job::Current() const {
  if (collective_->engaged()) return *collective_;
  return *classic_;
}

void Job::Opened(ConnectionId connection, std::string host, std::uint16_t port, TimePoint now) {
  desk_.Open(connection, std::move(host), port, now + kHelloTimeout);
  callers_[connection].since = now;
  if (desk_.strangers() > kMaxStrangers + 2 * static_cast<std::size_t>(world_size())) DropOldestStranger();
}

bool Job::DropSilentStranger(TimePoint now) {
  const auto oldest = desk_.OldestStranger();
  if (!oldest || now - callers_.at(*oldest).since < kGrace) return false;
  DropOldestStranger();
  return true;
}

void Job::DropOldestStranger() {
  const auto oldest = desk_.OldestStranger();
  if (oldest) Drop(*oldest, "too many connections that say nothing, and this one is the oldest");
}

void Job::CountStrangerBytes(ConnectionId connection, std::size_t bytes) {
  if (!desk_.IsStranger(connection)) return;
  callers_.at(connection).bytes += bytes;
  stranger_bytes_ += bytes;
  if (stranger_bytes_ > kMaxStrangerBytes) LimitStrangerBytes();
}

void Job::Heard(ConnectionId connection, std::size_t bytes) {
  if (!finished() && desk_.Has(connection)) CountStrangerBytes(connection, bytes);
}

/// Down to half of the limit, so that counting anew is rare.
void Job::LimitStrangerBytes() {
  std::vector<std::pair<std::size_t, ConnectionId>> senders;
  stranger_bytes_ = 0;
  for (const auto& [connection, caller] : callers_) {
    if (!desk_.IsStranger(connection)) continue;
    senders.emplace_back(caller.bytes, connection);
    stranger_bytes_ += caller.bytes;
  }
  if (stranger_bytes_ <= kMaxStrangerBytes) return;
  std::sort(senders.begin(), senders.end());
  for (; stranger_bytes_ > kMaxStrangerBytes / 2; senders.pop_back()) {
    stranger_bytes_ -= senders.back().first;
    Drop(
        senders.back().second,
        fmt::format("it has sent {} bytes without saying who it is, more than others, and {} MiB is the most "
                    "that all such may send",
                    senders.back().first, kMaxStrangerBytes >> 20));
  }
}

void Job::Received(ConnectionId connection, std::string_view bytes, TimePoint now) {
  if (finished() || !desk_.Has(connection)) return;
  const auto found = callers_.find(connection);
  if (found == callers_.end()) return;  // an error port has nothing to say
  CountStrangerBytes(connection, bytes.size());
  if (!desk_.Has(connection)) return;
  try {
    Caller& caller = found->second;
    if (caller.job == nullptr && !ReadHead(connection, caller, bytes)) return;
    if (is_open_to_others() && desk_.proven(connection)) {
      caller.said += bytes;
      if (WantsARank(caller.job == &*classic_, caller.said)) return CloseToOthers(now);
    }
    HandOver(connection, bytes, now);
  } catch (const wire::ProtocolError& error) {
    Drop(connection, error.what());
  }
}

/// To the job whose dialect the connection speaks.
void Job::HandOver(ConnectionId connection, std::string_view bytes, TimePoint now) {
  try {
    DialectJob& job = *callers_.at(connection).job;
    if (OtherThan(job).engaged()) throw wire::ProtocolError(RefusalOf(job));
    const bool was_engaged = job.engaged();
    job.Received(connection, bytes, now);
    if (!was_engaged && job.engaged()) DropStrangersOf(OtherThan(job));
  } catch (const wire::ProtocolError& error) {
    Drop(connection, error.what());
  }
}

/// Reads what precedes the dialects. Returns true once the dialect is known; `bytes` are then those that
/// follow.
bool Job::ReadHead(ConnectionId connection, Caller& caller, std::string_view& bytes) {
  caller.head.Append(bytes);
  if (caller.step == Caller::Step::kNonce || caller.step == Caller::Step::kProof) {
    if (!ReadIntroduction(connection, caller)) return false;
  }
  if (caller.step == Caller::Step::kMagic) {
    const auto magic = caller.head.Int();
    if (!magic) return false;
    if (*magic == wire::kIntroductionMagic && !desk_.proven(connection)) {
      if (!admission_.keys()) {
        throw wire::ProtocolError(fmt::format(
            "it wants to prove a job token ({}), and this tracker was given none", wire::kTokenVariable));
      }
      if (admission_.requires_tls()) {
        throw wire::ProtocolError(
            "it would prove the job's token and go on in the clear, and this job's connections are encrypted "
            "(--tls): its environment lacks RABIT_TLS=1");
      }
      caller.step = Caller::Step::kNonce;
      if (!ReadIntroduction(connection, caller)) return false;
      return ReadHead(connection, caller, bytes = {});
    }
    if ((*magic & kTlsMask) == kTlsBegin && !admission_.requires_tls()) {
      throw wire::ProtocolError(
          "it wants TLS (RABIT_TLS=1 in its environment), and this tracker was started without --tls");
    }
    if (*magic != wire::kMagic) {
      throw wire::ProtocolError(
          fmt::format("not a worker: its first four bytes are {:#010x}, expected {:#010x}",
                      static_cast<std::uint32_t>(*magic), static_cast<std::uint32_t>(wire::kMagic)));
    }
    if (!desk_.proven(connection)) {
      if (const auto why = admission_.Refusal(desk_.host(connection))) throw wire::ProtocolError(*why);
    }
    desk_.Send(connection, wire::classic::EncodeMagic());
    caller.step = Caller::Step::kDialect;
  }
  bytes = caller.head.Peek(caller.head.available());
  const auto dialect = wire::DetectDialect(bytes);
  if (!dialect) return false;
  caller.job = &*classic_;
  if (*dialect == wire::Dialect::kCollective) caller.job = &*collective_;
  caller.job->Opened(connection);
  return true;
}

void Job::RequireSame(const wire::Digest& shown, const wire::Digest& expected) {
  if (wire::Same(wire::BytesOf(shown), wire::BytesOf(expected))) return;
  throw wire::ProtocolError(fmt::format(
      "it does not know this job's token: it belongs to another job, or its {} is not this tracker's",
      wire::kTokenVariable));
}

/// Returns true when both have proved that they know the token.
bool Job::ReadIntroduction(ConnectionId connection, Caller& caller) {
  using wire::Introduced;
  if (caller.step == Caller::Step::kNonce) {
    if (caller.head.available() < sizeof(wire::Nonce) + sizeof(wire::Digest)) return false;
    caller.worker_nonce = *wire::NextDigest(caller.head);
    RequireSame(*wire::NextDigest(caller.head), admission_.keys()->Claim(caller.worker_nonce));
    caller.tracker_nonce = admission_.NextNonce();
    desk_.Send(connection, wire::EncodeNonce(caller.tracker_nonce));
    caller.step = Caller::Step::kProof;
  }
  const auto proof = wire::NextDigest(caller.head);
  if (!proof) return false;
  const auto expected = [&](Introduced who) {
    return admission_.keys()->Proof(who, caller.worker_nonce, caller.tracker_nonce);
  };
  RequireSame(*proof, expected(Introduced::kWorker));
  desk_.Send(connection, std::string(wire::BytesOf(expected(Introduced::kTracker))));
  caller.step = Caller::Step::kMagic;
  Proved(connection);
  return true;
}

void Job::Proved(ConnectionId connection) {
  if (!finished() && desk_.Has(connection)) desk_.SetProven(connection);
}

/// The first worker that has proved the token wants a rank. Whatever those have begun who came without, who
/// is a stranger or one of another job as far as is known, is forgotten with them, and the job begins anew.
void Job::CloseToOthers(TimePoint now) {
  admission_.Close();
  if (classic_->begun() || collective_->begun()) {
    desk_.Log(
        Severity::kWarning,
        fmt::format(
            "workers that did not prove the job's token ({}) had made this job theirs before one that did "
            "came; they are dropped, and it begins anew",
            wire::kTokenVariable));
  }
  std::vector<ConnectionId> ours;
  for (const auto& [connection, caller] : callers_) {
    if (!desk_.Has(connection)) continue;
    if (desk_.proven(connection)) {
      if (caller.job != nullptr) ours.push_back(connection);
    } else if (caller.job != nullptr || caller.step == Caller::Step::kDialect) {
      desk_.Log(Severity::kWarning, fmt::format("dropped {}: {}", desk_.Name(connection),
                                                *admission_.Refusal(desk_.host(connection))));
      desk_.Close(connection);
    }
  }
  collective_->Abandon();
  classic_.emplace(desk_, options_, now);
  collective_.emplace(desk_, options_, now);
  if (options_.takes_notes) desk_.Add(Note{.kind = Note::Kind::kClosed});
  std::sort(ours.begin(), ours.end());
  for (const ConnectionId connection : ours) callers_.at(connection).job->Opened(connection);
  for (const ConnectionId connection : ours) {
    const std::string said = std::exchange(callers_.at(connection).said, {});
    HandOver(connection, said, now);
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
      "it speaks {}, but the other workers of this job speak {}: all workers of a job need the same "
      "version of XGBoost",
      is_classic ? kClassic : kCollective, is_classic ? kCollective : kClassic);
}

/// Those who had not said all of their hello when the first worker of the other dialect came.
void Job::DropStrangersOf(const DialectJob& job) {
  for (const auto& [connection, caller] : callers_) {
    if (caller.job == &job && desk_.Has(connection)) Drop(connection, RefusalOf(job));
  }
}

void Job::Reached(ConnectionId connection) {
  if (desk_.Has(connection)) collective_->Reached(connection);
}

void Job::Closed(ConnectionId connection, std::string_view why, TimePoint now) {
  const auto found = callers_.find(connection);
  if (!desk_.Has(connection)) return;
  if (found == callers_.end()) {
    collective_->Closed(connection, why, now);  // one that we called
  } else if (found->second.job != nullptr) {
    found->second.job->Closed(connection, why, now);
  } else {
    Drop(connection, fmt::format("{}, expected {}", why, Expected(found->second)));
  }
}

void Job::Drop(ConnectionId connection, const std::string& reason) {
  DialectJob* const job = callers_.at(connection).job;
  if (job != nullptr) {
    job->Drop(connection, reason);
  } else {
    desk_.Log(Severity::kWarning, fmt::format("dropped {}: {}", desk_.Name(connection), reason));
    desk_.Close(connection);
  }
}

std::vector<Action> Job::TakeActions() {
  std::vector<Action> actions = desk_.TakeActions();
  for (const Action& action : actions) {
    if (const auto* close = std::get_if<Close>(&action)) callers_.erase(close->connection);
  }
  return actions;
}

void Job::WaitAnew(TimePoint now) {
  classic_->WaitAnew(now);
  collective_->WaitAnew(now);
}

void Job::TaskFailed(const std::string& task_id, const std::string& how, TimePoint now) {
  collective_->TaskFailed(task_id, how, now);
}

void Job::Tick(TimePoint now) {
  if (finished()) return;
  while (const auto late = desk_.FirstLate(now)) Closed(*late, "it said nothing for too long", now);
  if (collective_->engaged()) {
    collective_->Tick(now);
  } else {
    classic_->Tick(now);
  }
}

std::optional<TimePoint> Job::NextDeadline() const {
  if (finished()) return std::nullopt;
  const auto desk = desk_.NextDeadline();
  const auto job = Current().NextDeadline();
  return desk && job ? std::min(desk, job) : desk ? desk : job;
}

}  // namespace warren::tracker
