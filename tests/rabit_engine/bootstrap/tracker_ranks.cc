// One rank of a job, for the process tests: joins through the tracker, makes a TCP transport, and runs a
// subcommand.
//
//   tracker_ranks records          gathers a record of every rank, prints the records, exits with 0
//   tracker_ranks records R R ...  the same, except that the ranks R pause forever instead
//   tracker_ranks together         shuts down together with all other ranks
//   tracker_ranks ring             passes numbers around the ring until an error
//   tracker_ranks all <rounds>     exchanges numbers with every other rank, exits with 0
//   tracker_ranks mismatch         the last rank calls an allreduce with a different count
//
// Prints "joined RANK PID" first. If a rank is lost during `ring`, `all` or `mismatch`, prints "lost RANK
// SECONDS: text" with SECONDS since the last success; on any other error, "failed: text".
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "rabit_engine/base/error.h"
#include "rabit_engine/base/settings.h"
#include "rabit_engine/bootstrap/tracker_bootstrap.h"
#include "rabit_engine/collective/peer_group.h"
#include "rabit_engine/transport/tcp/tcp_transport.h"

namespace {

using namespace warren;

// Returns "SECRET ADDRESS ADDRESS ...". All ranks use rank 0's secret.
std::string MyRecord(const TrackerBootstrap& bootstrap) {
  std::string record = std::to_string(std::random_device{}());
  for (const std::string& address : bootstrap.ListenAddresses()) record += " " + address;
  return record;
}

void Trade(TcpTransport& transport, const std::vector<int>& members, const CallTag& tag, int to, int from) {
  PeerGroup group(transport, members, transport.rank(), tag, kNoDeadline);
  const int peers[] = {to, from};
  group.Connect(peers);
  const int mine = transport.rank();
  int theirs = -1;
  const Send send{to, &mine, sizeof mine};
  const Receive receive{from, &theirs, sizeof theirs, {}};
  group.Exchange({&send, 1}, {&receive, 1});
  if (theirs != from) throw EngineError("rank " + std::to_string(from) + " sent " + std::to_string(theirs));
}

int Run(const std::vector<std::string>& words) {
  const std::string& mode = words.at(1);
  const Settings settings = ReadSettings(words);
  TrackerBootstrap bootstrap(settings, std::nullopt);
  const int rank = bootstrap.rank();
  const int world_size = bootstrap.world_size();
  std::printf("joined %d %d\n", rank, static_cast<int>(getpid()));
  std::fflush(stdout);
  if (mode == "records") {
    if (std::find(words.begin() + 2, words.end(), std::to_string(rank)) != words.end()) pause();
    for (const std::string& record : bootstrap.Allgather("record of " + std::to_string(rank))) {
      std::printf("%s\n", record.c_str());
    }
    bootstrap.Print("rank " + std::to_string(rank) + " was here");
    bootstrap.Shutdown();
    return 0;
  }
  if (mode == "together") {
    while (!bootstrap.ShutdownTogether()) {
    }
    return 0;
  }
  std::vector<std::vector<std::string>> addresses;
  tcp::LinkKey key{};
  for (const std::string& record : bootstrap.Allgather(MyRecord(bootstrap))) {
    std::istringstream words(record);
    std::string secret;
    words >> secret;
    if (addresses.empty()) key = wire::Sha256().Update(secret).Finish();
    addresses.emplace_back(std::istream_iterator<std::string>(words), std::istream_iterator<std::string>());
  }
  TcpTransport transport(rank, world_size, bootstrap.TakeListener(), std::move(addresses), key, {});
  for (ConnectedPeer& link : bootstrap.TakeLinks()) transport.Adopt(link.rank, std::move(link.stream));
  std::vector<int> members(static_cast<std::size_t>(world_size));
  std::iota(members.begin(), members.end(), 0);
  Clock::time_point last_success = Clock::now();
  try {
    CallTag tag;
    tag.collective = Collective::kAllreduce;
    tag.count = 1;
    tag.element_bytes = sizeof(int);
    if (mode == "mismatch" && rank == world_size - 1) tag.count = 2;
    const int rounds = mode == "ring" ? 1 << 30 : mode == "all" ? std::stoi(words.at(2)) : 1;
    for (int round = 0; round < rounds; ++round) {
      for (int step = 1; step < (mode == "all" ? world_size : 2); ++step) {
        ++tag.sequence;
        Trade(transport, members, tag, (rank + step) % world_size, (rank - step + world_size) % world_size);
        last_success = Clock::now();
      }
      if (mode == "ring") usleep(1000);
    }
    transport.ExpectPeersToLeave();
    for (int step = 1; step < world_size; step *= 2) {  // a barrier
      tag.collective = Collective::kBarrier;
      ++tag.sequence;
      Trade(transport, members, tag, (rank + step) % world_size, (rank - step + world_size) % world_size);
    }
    std::printf("done %d\n", rank);
  } catch (const LostPeer& lost) {
    transport.Abort(lost.rank());
    const double seconds = std::chrono::duration<double>(Clock::now() - last_success).count();
    std::printf("lost %d %.3f: %s\n", lost.rank(), seconds, lost.what());
    std::fflush(stdout);
    return 3;
  }
  bootstrap.Shutdown();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Run({argv, argv + argc});
  } catch (const std::exception& error) {
    std::printf("failed: %s\n", error.what());
    return 4;
  }
}
