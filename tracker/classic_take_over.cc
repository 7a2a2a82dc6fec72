// Takes over a job of rabit workers from a tracker that has died, by replaying that tracker's notes.
#include <algorithm>

#include "tracker/classic_job.h"

namespace warren::tracker {

namespace classic = wire::classic;

void ClassicJob::TakeOver(const std::vector<Note>& notes, TimePoint now) {
  const bool takes_notes = connections_.SetTakesNotes(false);  // these notes are already written
  for (const Note& note : notes) Replay(note);
  for (int rank = 0; rank < static_cast<int>(members_.size()); ++rank) {
    Member& member = members_[rank];
    if (!member.assigned || broker_->listening(rank)) continue;
    broker_->Leave(rank);
    // A worker with a task id keeps its rank, because it may have links of which there is no note.
    if (!member.has_linked && !member.shut_down && member.task_id == classic::kNoTaskId) Unassign(rank);
  }
  awaits_end_ = num_shut_down_ > 0;
  connections_.SetTakesNotes(takes_notes);
  linked_ = broker_ && broker_->complete();
  incomplete_since_ = now;
  if (linked_) connections_.Add(Linked{});
  if (broker_) FinishWhenAllHaveShutDown(now);
}

void ClassicJob::Replay(const Note& note) {
  const auto check = [&](bool possible) { RequirePossible(note, possible); };
  const int rank = note.rank;
  if (note.kind == Note::Kind::kWorld) {
    check(num_assigned_ == 0 && rank >= 1 && rank <= classic::kMaxWorldSize);
    return SetWorldSize(rank);
  }
  const auto is_rank = [&](int other) { return other >= 0 && other < static_cast<int>(members_.size()); };
  check(is_rank(rank) && std::all_of(note.peers.begin(), note.peers.end(), is_rank));
  Member& member = members_[rank];
  check(member.assigned || note.kind == Note::Kind::kAssigned);
  switch (note.kind) {
    case Note::Kind::kWorld:
      return;
    case Note::Kind::kAssigned:
      if (!member.assigned) ++num_assigned_;
      member.assigned = true;
      member.task_id = note.task_id;
      member.host = note.host;
      if (member.task_id != classic::kNoTaskId) task_ranks_[member.task_id] = rank;
      return broker_->Join(rank);
    case Note::Kind::kUnassigned:
      check(!member.shut_down);
      return Unassign(rank);
    case Note::Kind::kLinked:
      return broker_->RestoreLinks(rank, note.peers);
    case Note::Kind::kListens:
      member.listen_port = note.port;
      member.has_linked = begun_ = true;
      return broker_->Restore(rank, note.peers);
    case Note::Kind::kShutDown:
      check(!member.shut_down);
      member.shut_down = member.shut_down_before = true;
      ++num_shut_down_;
      return;
    case Note::Kind::kReturned:
      check(member.shut_down);
      member.shut_down = member.shut_down_before = false;
      --num_shut_down_;
      return;
    default:
      return check(false);
  }
}

}  // namespace warren::tracker
