// The tracker's server: a thin layer of Boost.Asio around the state machine in job.h.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tracker/job.h"

namespace warren::tracker {

/// The range of ports tried by default, as in rabit.
inline constexpr std::uint16_t kFirstPort = 9091;
inline constexpr std::uint16_t kLastPort = 9999;

struct ServerOptions {
  std::string bind_address;            ///< IPv4 or IPv6 literal; empty: every address of the machine
  std::uint16_t port = kFirstPort;     ///< first port to try; 0: any free one
  std::uint16_t port_end = kLastPort;  ///< last port to try, inclusive; ignored if `port` is 0
  /// Whether the search starts at a random port of the range. Workers that cannot prove a token, and whose
  /// own tracker is gone, are then unlikely to reach another job's tracker on the same port.
  bool begin_anywhere = false;
  JobOptions job;  ///< the server sets `admission.seed` and `is_own_user`
  /// The notes of the job's previous tracker; empty for a new job.
  std::vector<Note> notes;
};

/// Events for the owner of a tracker. Called in the io_context's thread; each function may be empty.
struct ServerEvents {
  /// A worker has joined and waits to be linked; `joined` of `expected` workers have done so.
  std::function<void(int joined, int expected)> joined;
  /// A worker has been given its rank.
  std::function<void(const std::string& task_id, int rank, const std::string& host)> assigned;
  /// All workers are linked (XGBoost 2.1 and later: have been told their successors). Called again after each
  /// re-linking.
  std::function<void()> linked;
  std::function<void(const GenerationBegan& generation)> generation_began;
  /// A worker of an elastic job has reported that the job's work is done, or a worker that had reported this
  /// has more to do.
  std::function<void(bool is_done)> work_done;
  /// A worker reports its state.
  std::function<void(const wire::WorkerReport& report)> reported;
  /// The worker of this rank (-1: unknown) has printed `text` through the tracker.
  std::function<void(int rank, const std::string& text)> print;
  /// A change that another tracker needs to take the job over. Called only with JobOptions::takes_notes.
  std::function<void(const Note& note)> note;
  /// The workers of XGBoost 2.1 or later cannot continue together: the worker of `task_id` has failed, and
  /// all others were told to stop. `story` names the worker and describes the failure. All may start again.
  /// Not called for elastic jobs.
  std::function<void(const std::string& task_id, const std::string& story)> broken;
  /// The job is over; called once. `failure`: why the job failed; empty if it succeeded.
  std::function<void(const std::string& failure)> finished;
};

/// Serves one job. Not thread-safe: use it from the thread that runs the io_context.
class Server {
 public:
  /// Binds and listens immediately, so that workers may be started when this returns; serves once the
  /// io_context runs. Throws std::runtime_error if it cannot listen (the message names the address and the
  /// ports tried) or cannot set up TLS, and std::invalid_argument if the number of workers or the notes are
  /// invalid.
  Server(boost::asio::io_context& io, const ServerOptions& options, ServerEvents events);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const;
  const Job& job() const;
  /// See Job::WaitAnew.
  void WaitAnew();
  /// See Job::TaskFailed.
  void TaskFailed(const std::string& task_id, const std::string& how);
  /// See Job::Expect.
  void Expect(int num_workers);
  /// Closes every connection and stops listening; `finished` is not called afterwards.
  void Stop();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace warren::tracker
