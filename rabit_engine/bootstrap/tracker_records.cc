// The exchange of records along the links that a tracker bootstrap has made.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "posix/shortage.h"
#include "posix/sockets.h"
#include "rabit_engine/base/error.h"
#include "rabit_engine/base/shortage.h"
#include "rabit_engine/bootstrap/tracker_bootstrap.h"
#include "wire/bytes.h"

namespace warren {

// Records go up the tree to rank 0, then down again. Each link of the tree carries a count, then for each
// rank its number, the length of its record, and the record. Each ring link outside the tree carries one
// byte, which a rank sends once it has all records. No rank continues before each neighbor has all records
// or, as a child in the tree, has been sent them. So a link that breaks earlier belongs to a rank that gave
// up.
std::vector<std::string> TrackerBootstrap::Allgather(const std::string& record) {
  if (record.size() > kMaxRecordBytes) {
    throw Misuse(fmt::format("a bootstrap record of {} bytes, at most {} are allowed", record.size(),
                             kMaxRecordBytes));
  }
  const Clock::time_point deadline = Clock::now() + patience_;
  const int world_size = assignment_.world_size;
  std::map<int, std::string> known{{assignment_.rank, record}};
  const auto read_from = [&](int peer) {
    std::int32_t count = 0;
    ReadFrom(peer, &count, sizeof count, deadline);
    if (count < 1 || count > world_size) {
      throw EngineError(fmt::format("rank {} announces the records of {} ranks, the world has {}", peer,
                                    count, world_size));
    }
    for (std::int32_t i = 0; i < count; ++i) {
      std::int32_t rank = -1;
      ReadFrom(peer, &rank, sizeof rank, deadline);
      if (rank < 0 || rank >= world_size) {
        throw EngineError(
            fmt::format("rank {} sends the record of rank {}, the world has {}", peer, rank, world_size));
      }
      known[rank] = ReadRecord(peer, deadline);
    }
  };
  const auto encode = [&] {
    wire::Writer writer;
    writer.Int(static_cast<std::int32_t>(known.size()));
    for (const auto& [rank, text] : known) writer.Int(rank).String(text);
    return writer.Take();
  };

  std::vector<int> children(assignment_.tree_neighbors.begin(), assignment_.tree_neighbors.end());
  std::erase(children, assignment_.parent);
  for (const int child : children) read_from(child);
  if (assignment_.parent >= 0) {
    WriteTo(assignment_.parent, encode());
    read_from(assignment_.parent);
  }
  if (static_cast<int>(known.size()) != world_size) {
    throw EngineError(
        fmt::format("{} has the records of {} ranks, the world has {}", Name(), known.size(), world_size));
  }
  const std::string all = children.empty() ? std::string() : encode();
  for (const int child : children) WriteTo(child, all);
  MeetRingNeighbors(deadline);
  std::vector<std::string> records;
  records.reserve(known.size());
  for (auto& [rank, text] : known) records.push_back(std::move(text));
  return records;
}

// Exchanges a byte with each ring neighbor outside the tree. The bytes are read in the order of their
// arrival, because a neighbor may close its link right after sending its byte.
void TrackerBootstrap::MeetRingNeighbors(Clock::time_point deadline) {
  const auto& tree = assignment_.tree_neighbors;
  std::set<int> awaited{assignment_.ring_prev, assignment_.ring_next};
  std::erase_if(awaited, [&](int rank) {
    return rank < 0 || rank == assignment_.rank || std::find(tree.begin(), tree.end(), rank) != tree.end();
  });
  for (const int rank : awaited) WriteTo(rank, std::string(1, '\1'));
  for (;;) {
    for (const int rank : std::set<int>(awaited)) {
      char theirs = 0;
      const ssize_t count = links_.at(rank).Receive(&theirs, sizeof theirs);
      if (count > 0) {
        awaited.erase(rank);
      } else if (count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
        ThrowLost(rank, count == 0 ? 0 : errno);
      }
    }
    if (awaited.empty()) return;
    if (Clock::now() >= deadline) {
      throw TimedOut(fmt::format("{} waited for ranks {} to have all records: no answer in time", Name(),
                                 fmt::join(awaited, ", ")));
    }
    std::vector<pollfd> waits;
    waits.reserve(awaited.size());
    for (const int rank : awaited) waits.push_back({links_.at(rank).fd(), POLLIN, 0});
    tcp::PollUntil(waits, deadline);
  }
}

std::string TrackerBootstrap::ReadRecord(int peer, Clock::time_point deadline) {
  std::int32_t length = 0;
  ReadFrom(peer, &length, sizeof length, deadline);
  if (length < 0 || static_cast<std::size_t>(length) > kMaxRecordBytes) {
    throw EngineError(fmt::format("rank {} announces a record of {} bytes, at most {} are allowed", peer,
                                  length, kMaxRecordBytes));
  }
  std::string record(static_cast<std::size_t>(length), '\0');
  ReadFrom(peer, record.data(), record.size(), deadline);
  return record;
}

void TrackerBootstrap::ReadFrom(int peer, void* data, std::size_t bytes, Clock::time_point deadline) {
  const auto link = links_.find(peer);
  if (link == links_.end()) throw Misuse("Allgather after TakeLinks");
  auto* out = static_cast<char*>(data);
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t count = link->second.Receive(out + done, bytes - done);
    if (count > 0) {
      done += static_cast<std::size_t>(count);
    } else if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      WaitForBytes(peer, deadline);
    } else if (count == 0 || errno != EINTR) {
      ThrowLost(peer, count == 0 ? 0 : errno);
    }
  }
}

// Throws LostPeer, or LocalShortage if this host lacks a resource. `error` is 0 if the peer has closed the
// connection.
void TrackerBootstrap::ThrowLost(int peer, int error) const {
  const tcp::Stream& stream = links_.at(peer);
  const std::string place = fmt::format("rank {} at {}", peer, tcp::Address::Remote(stream.fd()).ToString());
  if (!posix::ConcernsAddress(error))
    ThrowIfShortage(fmt::format("{} cannot exchange its record with {}", Name(), place), "send or recv",
                    error);
  throw LostPeer(
      peer, fmt::format("{} lost {} while the ranks exchanged records: {}. Look at what it printed last.",
                        Name(), place, error == 0 ? "it closed the connection" : stream.TextOf(error)));
}

// Waits until the peer has sent something or any link breaks. No rank has continued without this rank, so a
// broken link belongs to a rank that has abandoned this attempt and waits for all others in the next one.
void TrackerBootstrap::WaitForBytes(int peer, Clock::time_point deadline) const {
  std::vector<pollfd> waits;
  std::vector<int> ranks;
  for (const auto& [rank, stream] : links_) {
    waits.push_back(
        {stream.fd(), static_cast<short>(rank == peer ? POLLIN | posix::kPeerDone : posix::kPeerDone), 0});
    ranks.push_back(rank);
  }
  const int ready = tcp::PollUntil(waits, deadline);
  for (std::size_t i = 0; i < waits.size() && ready > 0; ++i) {
    if (ranks[i] != peer && waits[i].revents != 0) ThrowLost(ranks[i], 0);
  }
  if (ready == 0 && Clock::now() >= deadline) {
    throw TimedOut(fmt::format("{} waited for the records of rank {} at {}: no answer in time", Name(), peer,
                               tcp::Address::Remote(links_.at(peer).fd()).ToString()));
  }
}

void TrackerBootstrap::WriteTo(int peer, const std::string& bytes) {
  const auto link = links_.find(peer);
  if (link == links_.end()) throw Misuse("Allgather after TakeLinks");
  const int error = link->second.SendUntil(bytes, Clock::now() + patience_);
  if (error == EAGAIN) {
    throw TimedOut(fmt::format("{}: rank {} does not read its records", Name(), peer));
  }
  if (error != 0) ThrowLost(peer, error);
}

}  // namespace warren
