// Errors of the engine, which are always thrown as exceptions; the APIs in api/ translate them into what
// their callers expect. A message states what was being done, what was observed, and what to do next. It
// names the rank, unless the rank is not known yet, as in errors of settings; if a peer is lost, it also
// names the peer's host.
#pragma once

#include <stdexcept>
#include <string>

namespace warren {

/// Any failure of the engine.
class EngineError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A call cannot complete because of a peer. The communicator is unusable until it is linked again.
class PeerError : public EngineError {
 public:
  /// The rank in the job that was lost or waited for, or -1 if unknown.
  int rank() const { return rank_; }
  /// The errno of the resource shortage because of which rank() gave up; 0 if it reported none.
  int shortage() const { return shortage_; }

 protected:
  PeerError(int rank, const std::string& message, int shortage = 0)
      : EngineError(message), rank_(rank), shortage_(shortage) {}

 private:
  int rank_;
  int shortage_;
};

/// A peer is gone: its process ended, its connection broke, or it gave up after an error.
class LostPeer : public PeerError {
 public:
  LostPeer(int rank, const std::string& message, int shortage = 0) : PeerError(rank, message, shortage) {}
};

/// This process or its host lacks what a call needs: descriptors, memory, ports, threads, permission. No peer
/// is at fault, and linking again would not help. Thrown by the functions in base/shortage.h.
class LocalShortage : public EngineError {
 public:
  LocalShortage(int error, const std::string& message) : EngineError(message), error_(error) {}
  /// The errno of the call that failed.
  int error() const { return error_; }

 private:
  int error_;
};

/// A deadline passed.
class TimedOut : public PeerError {
 public:
  explicit TimedOut(const std::string& message, int rank = -1) : PeerError(rank, message) {}
};

/// An error of the caller: an invalid argument or setting, a collective that differs from its peers' calls, a
/// call before Init or after Finalize.
class Misuse : public EngineError {
 public:
  using EngineError::EngineError;
};

/// A call was refused and had no effect. If all ranks that make the call refuse it, they can continue as if
/// the call had not been made.
class Refused : public Misuse {
 public:
  using Misuse::Misuse;
};

/// The tracker is not available: its process has ended, the network is down, or the tracker refused this
/// worker.
class TrackerLost : public EngineError {
 public:
  enum class When { kConnecting, kTalking };
  TrackerLost(When when, const std::string& message) : EngineError(message), when_(when) {}
  /// kConnecting: the tracker could not be reached, after all retries. kTalking: a connection to the tracker
  /// was made, but then broke or was closed.
  When when() const { return when_; }

 private:
  When when_;
};

}  // namespace warren
