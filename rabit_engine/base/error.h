// What can go wrong inside the engine. Every message says who (rank, host), what was being done, what was
// seen, and what to do next. Exceptions are the one error style of the tree; the faces in api/ translate
// them into what their callers expect.
#pragma once

#include <stdexcept>
#include <string>

namespace warren {

/// Any failure of the engine.
class EngineError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A call cannot end because of a peer. The communicator is of no further use until it is linked again.
class PeerError : public EngineError {
 public:
  /// The rank that was lost or waited for, or -1 when only "somebody" is known.
  int rank() const { return rank_; }

 protected:
  PeerError(int rank, const std::string& message) : EngineError(message), rank_(rank) {}

 private:
  int rank_;
};

/// A peer is gone: its process ended or its connection broke.
class LostPeer : public PeerError {
 public:
  LostPeer(int rank, const std::string& message) : PeerError(rank, message) {}
};

/// A deadline passed.
class TimedOut : public PeerError {
 public:
  explicit TimedOut(const std::string& message, int rank = -1) : PeerError(rank, message) {}
};

/// The caller broke the rules: another collective than its peers, a root out of range, a null pointer, a call
/// before Init or after Finalize.
class Misuse : public EngineError {
 public:
  using EngineError::EngineError;
};

/// A call that this rank did not even begin, nor do others that make the same one: all can go on as if it had
/// not been made.
class Refused : public Misuse {
 public:
  using Misuse::Misuse;
};

/// The tracker cannot be asked: its process has ended, or the network between is down, or it refused this
/// worker.
class TrackerLost : public EngineError {
 public:
  enum class When { kConnecting, kTalking };
  TrackerLost(When when, const std::string& message) : EngineError(message), when_(when) {}
  /// kConnecting: it was not there, however often this worker tried. kTalking: it was, and ended the
  /// conversation.
  When when() const { return when_; }

 private:
  When when_;
};

}  // namespace warren
