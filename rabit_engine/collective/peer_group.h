// The ranks that participate in one collective, and the bytes they exchange. Algorithms communicate only
// through this class, or in shared memory (hosts()). A group numbers its members 0, 1, ...; `peer` is always
// the number of a member. The members are all ranks of a communicator, or one rank of each of its hosts.
//
// On every link, the first message of a collective is preceded by a CallTag, which the receiver compares with
// its own call: if two ranks call different collectives, or pass different counts, the receiver throws Misuse
// instead of producing a wrong result. If only the sender and the receiver of a message know its length
// (CountsAreOfMessages), each message has a tag.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "rabit_engine/base/layout.h"
#include "rabit_engine/call/call_tag.h"
#include "rabit_engine/transport/transport.h"

namespace warren {

struct Send {
  int peer = -1;
  const void* data = nullptr;
  std::size_t bytes = 0;
};

/// Bytes to be received: into memory, or in pieces passed to a function while they are still in the cache.
struct Receive {
  int peer = -1;
  void* data = nullptr;  ///< the destination; nullptr if the bytes are passed to `consume`
  std::size_t bytes = 0;
  /// Called with the pieces of the message in order; each consists of whole elements. `offset` is the piece's
  /// position in the message.
  std::function<void(const std::byte* piece, std::size_t offset, std::size_t bytes)> consume;
};

class FrameReader;
class HostCollectives;

/// The assignment of all ranks to hosts, and the shared memory of this rank's host.
struct Hosts {
  HostCollectives* memory = nullptr;  ///< nullptr if this rank shares memory with no other
  const HostLayout* layout = nullptr;
};

/// Not thread-safe; one collective at a time.
///
/// A message of 0 bytes transfers only its tag, or nothing at all if an earlier message to the same peer has
/// carried the tag. A barrier can therefore consist of empty messages only if no member sends to the same
/// peer twice.
class PeerGroup {
 public:
  /// `members` are the ranks of the group, `index` is this rank's position among them. The transport and the
  /// members must outlive the group.
  PeerGroup(Transport& transport, std::span<const int> members, int index, const CallTag& tag,
            Clock::time_point deadline);
  /// The group of all ranks, for several collectives in sequence: call Begin before each. `hosts` must
  /// outlive the group, too.
  PeerGroup(Transport& transport, std::span<const int> members, int index, const Hosts& hosts);
  ~PeerGroup();
  PeerGroup(const PeerGroup&) = delete;
  PeerGroup& operator=(const PeerGroup&) = delete;

  void Begin(const CallTag& tag, Clock::time_point deadline);

  /// nullptr if the group was constructed without hosts.
  const Hosts* hosts() const { return hosts_; }
  Transport& transport() const { return transport_; }
  const CallTag& tag() const { return tag_; }
  Clock::time_point deadline() const { return deadline_; }
  int index() const { return index_; }
  int size() const { return static_cast<int>(members_.size()); }
  int rank_of(int peer) const { return members_[peer]; }
  /// All other members, starting with the next one, so that not all members send to the same member first.
  std::vector<int> Others() const;

  /// Establishes the links to these peers. Every member must call it with its peers before the first Exchange
  /// with them.
  void Connect(std::span<const int> peers);

  /// Sends and receives concurrently; returns when the transport has taken all sends and all receives have
  /// ended. Messages between two members keep their order over several calls. Pieces passed to `consume` are
  /// whole elements of `tag.element_bytes`, and at most 128 KiB long unless one element is longer. Throws
  /// LostPeer, TimedOut, LocalShortage, EngineError if a peer's bytes are not valid frames, or Misuse if a
  /// peer's tag differs (the transport is then aborted, so that no rank waits for this rank). A member cannot
  /// send messages to itself.
  void Exchange(std::span<const Send> sends, std::span<const Receive> receives);

 private:
  struct Outgoing;
  struct Incoming;

  bool Advance(Outgoing& out);
  bool Advance(Incoming& in);
  void Consume(Incoming& in);
  FrameReader& ReaderOf(int peer);
  void ReleaseReaders();
  CallTag TagOf(std::size_t message_bytes) const;
  void CheckTag(const Incoming& in);
  void Prepare(std::span<const Send> sends, std::span<const Receive> receives);
  void WaitForProgress();

  Transport& transport_;
  std::span<const int> members_;
  int index_;
  const Hosts* hosts_ = nullptr;
  CallTag tag_;
  Clock::time_point deadline_;
  bool has_exchanged_ = false;  ///< whether Exchange has been called since the last Begin
  std::vector<bool> sent_tag_;
  std::vector<bool> checked_tag_;
  /// The readers of frames that the current collective uses, with their peers.
  std::vector<std::pair<int, std::unique_ptr<FrameReader>>> readers_;
  // The messages of the current Exchange. The vectors are members so that they need not be allocated each
  // time.
  std::vector<Outgoing> outgoing_;
  std::vector<Incoming> incoming_;
  std::vector<Interest> interests_;
};

}  // namespace warren
