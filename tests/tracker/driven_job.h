// A job of the tracker that a test drives message by message, without sockets or clocks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tracker/job.h"

namespace warren::tracker {

/// A job, and what it has done so far. Set `job` before anything else.
class DrivenJob {
 public:
  TimePoint now{};
  std::optional<Job> job;
  ConnectionId next = 1;  ///< the number of the next connection

  std::map<ConnectionId, std::string> received;  ///< all bytes that the tracker has sent, by connection
  std::vector<ConnectionId> closed;
  std::vector<std::string> log;       ///< all lines
  std::vector<std::string> warnings;  ///< those that are warnings
  std::vector<std::string> prints;
  std::vector<int> print_ranks;
  std::map<std::string, int> ranks;  ///< by task
  int joined = 0;
  int times_linked = 0;
  std::vector<std::string> reported;            ///< the tasks that have sent reports
  std::map<std::uint16_t, ConnectionId> lines;  ///< the tracker's connections to workers, by error port
  std::vector<Broken> broken;
  std::vector<GenerationBegan> begun;
  std::vector<bool> done;  ///< WorkDone::is_done
  std::vector<Note> notes;
  std::optional<std::string> finished;  ///< Finished::failure

  /// Opens a connection and sends these bytes on it.
  ConnectionId Connect(const std::string& bytes, const std::string& host = "10.0.0.1") {
    const ConnectionId id = next++;
    job->Opened(id, host, static_cast<std::uint16_t>(40000 + id % 20000), now);
    Say(id, bytes);
    return id;
  }
  void Say(ConnectionId id, const std::string& bytes) {
    job->Received(id, bytes, now);
    Collect();
  }
  void Close(ConnectionId id) {
    job->Closed(id, "it closed the connection", now);
    Collect();
  }
  void Fail(const std::string& task, const std::string& how) {
    job->TaskFailed(task, how, now);
    Collect();
  }
  void PassTime(TimePoint::duration time) {
    now += time;
    job->Tick(now);
    Collect();
  }
  bool IsClosed(ConnectionId id) const { return std::count(closed.begin(), closed.end(), id) > 0; }
  /// The notes as the next tracker reads them from the state file.
  std::vector<Note> WrittenNotes() const {
    std::vector<Note> written;
    for (const Note& note : notes) written.push_back(DecodeNote(Encode(note)));
    return written;
  }

  void Collect() {
    for (auto actions = job->TakeActions(); !actions.empty(); actions = job->TakeActions()) {
      for (const Action& action : actions) std::visit([this](const auto& what) { Add(what); }, action);
    }
  }

 private:
  void Add(const Send& send) { received[send.connection] += send.bytes; }
  void Add(const tracker::Close& close) { closed.push_back(close.connection); }
  void Add(const tracker::Connect& call) { lines[call.port] = call.connection; }
  void Add(const Report& report) {
    log.push_back(report.text);
    if (report.severity == Severity::kWarning) warnings.push_back(report.text);
  }
  void Add(const Joined& workers) { joined = workers.joined; }
  void Add(const Assigned& assigned) { ranks[assigned.task_id] = assigned.rank; }
  void Add(const Linked&) { ++times_linked; }
  void Add(const GenerationBegan& generation) { begun.push_back(generation); }
  void Add(const WorkDone& work) { done.push_back(work.is_done); }
  void Add(const Broken& what) { broken.push_back(what); }
  void Add(const WorkerReported& worker) { reported.push_back(worker.report->task_id); }
  void Add(const Print& print) {
    prints.push_back(print.text);
    print_ranks.push_back(print.rank);
  }
  void Add(const Note& note) { notes.push_back(note); }
  void Add(const Finished& end) { finished = end.failure; }
};

}  // namespace warren::tracker
