// Where the scripts around the processes of a gang (scripts/gang.sh), started elsewhere by mpirun, srun, qsub
// and the like, call home: over two TCP connections each, made by bash. One carries what the process writes
// to standard output; the other its standard error with notes (notes.h) in between, and back to the script
// "go ATTEMPT PORT", which makes it start the process, and an empty line now and then. Its end makes the
// script end the process.
//
// So every process's output arrives apart from the others' and byte for byte, whatever the launcher does to
// it; all are heard of at once, and none outlives dmlc-submit, although none is its child.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "submit/cluster/notes.h"
#include "submit/process/stream.h"

namespace warren::submit {

/// Called from the io_context, each with the index of the process in the plan.
struct HomeEvents {
  /// A script is there, and waits for Go. It may be another one than before: the launcher started it anew.
  std::function<void(std::size_t index, const std::string& host)> arrived;
  std::function<void(std::size_t index, Stream stream, std::string_view bytes)> output;
  /// "start", "exit" or "stopped" (see scripts/gang.sh); all output that came before it has been handed on.
  std::function<void(std::size_t index, const Note& note)> note;
  /// Its connections have ended.
  std::function<void(std::size_t index)> left;
  /// Somebody who knows the job's mark, but not its key, says that he is the script of this process.
  std::function<void(std::size_t index, const std::string& host)> keyless;
};

class Home {
 public:
  /// Listens at `host`, on the first free port of the range. Whoever knows `key` is a script of this job.
  /// Throws std::runtime_error.
  Home(boost::asio::io_context& io, const std::string& job_mark, const std::string& key,
       const std::string& host, std::uint16_t port, std::uint16_t port_end, HomeEvents events);
  ~Home();
  Home(const Home&) = delete;
  Home& operator=(const Home&) = delete;

  std::uint16_t port() const;
  /// A script of this process is connected: `left` will follow.
  bool IsConnected(std::size_t index) const { return callers_.contains(index); }
  /// It is, and has not been told to end.
  bool IsHere(std::size_t index) const;
  /// Makes the script start its process. `port` is that of the tracker or the scheduler.
  void Go(std::size_t index, int attempt, std::uint16_t port);
  /// Makes the script end its process and itself; `left` follows.
  void End(std::size_t index);
  void PauseOutput();
  void ResumeOutput();

 private:
  struct Caller;
  struct Connection;

  void Accept();
  void DropOldestStranger();
  void ReadHello(const std::shared_ptr<Connection>& connection);
  void TakeIn(const std::shared_ptr<Connection>& connection);
  void Read(const std::shared_ptr<Connection>& connection);
  void OnBytes(Connection& connection, std::string_view bytes);
  void HandOn(Connection& connection, std::string_view bytes);
  void HandRestOn(Connection& connection);
  void Drain(const std::shared_ptr<Caller>& caller);
  void OnEnd(const std::shared_ptr<Connection>& connection);
  void Write(const std::shared_ptr<Connection>& connection, std::string line);
  void WriteNext(const std::shared_ptr<Connection>& connection);
  void HandNotesOn(Caller& caller);
  void Beat();

  boost::asio::io_context& io_;
  std::string job_mark_;
  std::string key_;
  HomeEvents events_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer accept_pause_;
  boost::asio::steady_timer beat_;
  std::map<std::size_t, std::shared_ptr<Caller>> callers_;
  std::map<std::uint64_t, std::shared_ptr<Connection>>
      strangers_;  ///< who have not said who they are, by age
  std::uint64_t last_stranger_ = 0;
  bool paused_ = false;
};

}  // namespace warren::submit
