// One rank of a job whose ranks wait for each other, for deadlock_test.py: `deadlock_worker <what> [group]`.
// Exits with 2 and the error on stderr, or with 0 if all waits end.
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "warren/collectives.h"

namespace {

using warren::Communicator;
using warren::Op;

constexpr std::size_t kMany = std::size_t{4} << 20;  // 32 MiB: more than any buffer holds

void Run(const std::string& what, const Communicator& comm) {
  const int rank = comm.rank();
  const int size = comm.size();
  const int next = (rank + 1) % size;
  const int before = (rank + size - 1) % size;
  std::vector<double> a(kMany, rank);
  std::vector<double> b(kMany);
  const std::map<std::string, std::function<void()>> cases = {
      {"receives",
       [&] {
         if (rank < 2) comm.Recv(a.data(), 1, 1 - rank);
       }},
      {"handles",
       [&] {
         if (rank < 2) comm.AsyncRecv(a.data(), 1, 1 - rank).Wait();
       }},
      {"after messages",
       [&] {
         comm.SendRecv(a.data(), 1000, next, b.data(), 1000, before);
         if (rank < 2) comm.Recv(a.data(), 1, 1 - rank);
       }},
      {"circle of receives", [&] { comm.Recv(a.data(), 1, next); }},
      {"circle of sends",
       [&] {
         comm.Send(a.data(), kMany, next);
         comm.Recv(b.data(), kMany, before);
       }},
      {"a call and a message",
       [&] {
         if (rank == 1) comm.Recv(a.data(), 1, 0);
         comm.Allreduce(a.data(), b.data(), 1, Op::kSum);
       }},
      {"a late chain",
       [&] {
         if (rank == size - 1) sleep(4);
         if (rank < size - 1) comm.Recv(a.data(), 1, rank + 1);
         if (rank > 0) comm.Send(a.data(), 1, rank - 1);
       }},
      {"late sends",
       [&] {
         if (rank == 0) sleep(3);
         if (rank % 2 == 0) comm.Send(a.data(), kMany, next);
         comm.Recv(b.data(), kMany, before);
         if (rank % 2 == 1) comm.Send(a.data(), kMany, next);
       }},
      {"late",
       [&] {
         if (rank == 1) sleep(8);
       }},
  };
  cases.at(what)();
  comm.Barrier();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    warren::Init(argc, argv);
    const std::string where = argc > 2 ? argv[2] : "";
    const Communicator world = warren::World();
    // The ranks of the group are in reverse order.
    Run(argv[1], where == "group" ? world.Split(0, -world.rank()) : world);
    warren::Finalize();
  } catch (const warren::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
