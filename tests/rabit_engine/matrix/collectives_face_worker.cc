// A program that uses warren/collectives.h.
//   check          makes every call, on the world and on communicators made from it; exit code 1 if a
//                  result is wrong
//   wait OP RANK   prints "rank N" once set up; then all ranks but rank RANK of the world call OP on a
//                  communicator of all ranks; exit code 2 and a message on an error
//   late OP RANK   the same for an asynchronous OP with the name "gradients" and a timeout of 0.3 s
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "tests/rabit_engine/matrix/require.h"
#include "warren/collectives.h"

namespace {

using warren::Communicator;
using warren::Op;
using warren::testing::ErrorOf;
using warren::testing::Has;

template <typename T>
std::vector<T> Filled(std::size_t count, T value) {
  return std::vector<T>(count, value);
}

template <typename T>
void CheckSums(const Communicator& comm) {
  const T total = static_cast<T>(static_cast<float>(comm.size() * (comm.size() + 1) / 2));
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{70'000}}) {
    const auto own = Filled(count, static_cast<T>(static_cast<float>(comm.rank() + 1)));
    std::vector<T> sum(count);
    comm.Allreduce(own.data(), sum.data(), count, Op::kSum);
    auto in_place = own;
    comm.Allreduce(in_place.data(), count, Op::kSum);
    std::vector<T> at_root(count);
    const int root = comm.size() - 1;
    comm.Reduce(own.data(), comm.rank() == root ? at_root.data() : nullptr, count, Op::kSum, root);
    for (std::size_t i = 0; i < count; ++i) {
      REQUIRE(sum[i] == total && in_place[i] == total);
      REQUIRE(comm.rank() != root || at_root[i] == total);
      REQUIRE(own[i] == static_cast<T>(static_cast<float>(comm.rank() + 1)));
    }
  }
}

void CheckAverages(const Communicator& comm) {
  const auto average = static_cast<float>(comm.size() - 1) / 2;
  auto floats = Filled(3, static_cast<float>(comm.rank()));
  comm.Allreduce(floats.data(), floats.size(), Op::kAverage);
  REQUIRE(floats[2] == average);
  auto doubles = Filled(3, static_cast<double>(comm.rank()));
  comm.Allreduce(doubles.data(), doubles.size(), Op::kAverage);
  REQUIRE(doubles[2] == average);
  // A sum before the division would overflow to infinity.
  auto halves = Filled(3, rabit::Float16(60'000.0F));
  comm.Allreduce(halves.data(), halves.size(), Op::kAverage);
  REQUIRE(halves[2] == 60'000.0F);
}

/// One count per rank: r for rank r.
std::vector<std::size_t> Rising(const Communicator& comm) {
  std::vector<std::size_t> counts(static_cast<std::size_t>(comm.size()));
  std::iota(counts.begin(), counts.end(), std::size_t{0});
  return counts;
}
std::size_t Sum(const std::vector<std::size_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

void CheckReduceScatters(const Communicator& comm) {
  const auto size = static_cast<std::size_t>(comm.size());
  const auto rank = static_cast<std::size_t>(comm.rank());
  std::vector<std::int64_t> all(2 * size);
  std::iota(all.begin(), all.end(), 0);
  const auto before = all;
  std::vector<std::int64_t> slice(2);
  comm.ReduceScatter(all.data(), slice.data(), 2, Op::kSum);
  REQUIRE(slice[1] == static_cast<std::int64_t>((2 * rank + 1) * size) && all == before);
  comm.ReduceScatter(all.data(), all.data() + 2 * rank, 2, Op::kSum);  // in place
  REQUIRE(all[2 * rank] == static_cast<std::int64_t>(2 * rank * size));
  const auto counts = Rising(comm);
  const auto ragged = Filled(Sum(counts), 1.5F);
  std::vector<float> part(rank);
  comm.ReduceScatter(ragged.data(), part.data(), counts, Op::kMax);
  REQUIRE(part == Filled(rank, 1.5F));
  comm.ReduceScatter(ragged.data(), part.data(), counts, Op::kAverage);
  REQUIRE(part == Filled(rank, 1.5F));
}

struct Pair {
  int first;
  int last;
};

void CheckFunctions(const Communicator& comm) {
  // The function is associative but not commutative.
  const auto span = [](const Pair& lower, const Pair& higher) { return Pair{lower.first, higher.last}; };
  const auto own = Filled(5, Pair{comm.rank(), comm.rank()});
  std::vector<Pair> all(5);
  comm.AllreduceBy(own.data(), all.data(), all.size(), span);
  REQUIRE(all[4].first == 0 && all[4].last == comm.size() - 1);
  comm.ReduceBy(own.data(), all.data(), all.size(), span, 0);
  REQUIRE(comm.rank() != 0 || (all[0].first == 0 && all[0].last == comm.size() - 1));
  const auto counts = Rising(comm);
  const auto many = Filled(Sum(counts), Pair{comm.rank(), comm.rank()});
  std::vector<Pair> part(static_cast<std::size_t>(comm.rank()));
  comm.ReduceScatterBy(many.data(), part.data(), counts, span);
  for (const Pair& pair : part) REQUIRE(pair.first == 0 && pair.last == comm.size() - 1);
}

void CheckSlices(const Communicator& comm) {
  const auto size = static_cast<std::size_t>(comm.size());
  const auto rank = static_cast<std::size_t>(comm.rank());
  const int root = comm.size() / 2;
  std::vector<int> ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0);

  auto value = Filled(40'000, comm.rank());
  comm.Broadcast(value.data(), value.size(), root);
  REQUIRE(value.back() == root);

  std::vector<int> gathered(size, -1);
  comm.Allgather(&ranks[rank], gathered.data(), 1);
  REQUIRE(gathered == ranks);
  std::vector<int> in_place(size, -1);
  in_place[rank] = comm.rank();
  comm.Allgather(&in_place[rank], in_place.data(), 1);
  REQUIRE(in_place == ranks);
  std::vector<int> at_root(size, -1);
  comm.Gather(&ranks[rank], at_root.data(), 1, root);
  REQUIRE(comm.rank() == root ? at_root == ranks : at_root == Filled(size, -1));
  int own = -1;
  comm.Scatter(comm.rank() == root ? ranks.data() : nullptr, &own, 1, root);
  REQUIRE(own == comm.rank());
  // In place: the root's own slice is where it should be.
  std::vector<int> slices(size, -1);
  slices[rank] = comm.rank();
  comm.Gather(&slices[rank], slices.data(), 1, root);
  REQUIRE(comm.rank() != root || slices == ranks);
  slices = comm.rank() == root ? ranks : std::vector<int>(size, -1);
  comm.Scatter(slices.data(), &slices[rank], 1, root);
  REQUIRE(slices[rank] == comm.rank() && (comm.rank() != root || slices == ranks));

  const auto counts = Rising(comm);
  std::vector<int> expected;
  for (std::size_t r = 0; r < size; ++r) expected.insert(expected.end(), r, static_cast<int>(r));
  const auto mine = Filled(rank, comm.rank());
  std::vector<int> all(expected.size(), -1);
  comm.Allgather(mine.data(), all.data(), counts);
  REQUIRE(all == expected);
  all = Filled(expected.size(), -1);
  comm.Gather(mine.data(), rank, all.data(), comm.rank() == root ? counts : std::vector<std::size_t>(), root);
  REQUIRE(comm.rank() != root || all == expected);
  std::vector<int> part(rank, -1);
  comm.Scatter(expected.data(), comm.rank() == root ? counts : std::vector<std::size_t>(), part.data(), rank,
               root);
  REQUIRE(part == mine);

  std::vector<int> from_all(size, -1);
  comm.AllToAll(ranks.data(), from_all.data(), 1);
  REQUIRE(from_all == Filled(size, comm.rank()));
  std::vector<int> ragged(rank * size, -1);
  comm.AllToAll(expected.data(), counts, ragged.data(), Filled(size, rank));
  REQUIRE(ragged == Filled(rank * size, comm.rank()));
  comm.Barrier();
}

void CheckMessages(const Communicator& comm) {
  const int next = (comm.rank() + 1) % comm.size();
  const int before = (comm.rank() + comm.size() - 1) % comm.size();
  const int own = comm.rank();
  int got = -1;
  comm.SendRecv(&own, 1, next, &got, 1, before);
  REQUIRE(got == before);
  if (comm.size() == 1) return;
  std::vector<double> many(50'000, 3.0);
  if (comm.rank() == 0) comm.Send(many.data(), many.size(), 1);
  if (comm.rank() == 1) {
    many.assign(many.size(), 0.0);
    comm.Recv(many.data(), many.size(), 0);
    REQUIRE(many.back() == 3.0);
  }
}

/// A function object that counts its live copies.
struct Lower {
  std::atomic<int>* alive;
  explicit Lower(std::atomic<int>* count) : alive(count) { ++*alive; }
  Lower(const Lower& other) : alive(other.alive) { ++*alive; }
  Lower& operator=(const Lower&) = delete;
  ~Lower() { --*alive; }
  int operator()(int low, int /*high*/) const { return low; }
};

/// Checks that callers' functions live exactly as long as asynchronous calls need them.
void CheckFunctionsWithoutWaiting(const Communicator& comm) {
  const warren::CallOptions options("a call", 60);
  std::atomic<int> alive{0};
  const auto size = static_cast<std::size_t>(comm.size());
  const std::vector<int> own(100 * size, comm.rank() + 7);
  std::vector<int> all(own.size());
  std::vector<int> root(own.size());
  std::vector<int> part(100);
  {
    std::vector<warren::Handle> handles;
    handles.push_back(comm.AsyncAllreduceBy(own.data(), all.data(), own.size(), Lower(&alive), options));
    handles.push_back(comm.AsyncReduceBy(own.data(), root.data(), own.size(), Lower(&alive), 0, options));
    handles.push_back(comm.AsyncReduceScatterBy(own.data(), part.data(), std::vector<std::size_t>(size, 100),
                                                Lower(&alive), options));
    comm.AsyncAllreduceBy(own.data(), all.data(), own.size(), Lower(&alive));  // the handle is dropped
    const warren::Coordinator named(comm);
    handles.push_back(named.EnqueueAllreduceBy("lower", own.data(), all.data(), own.size(), Lower(&alive)));
    warren::WaitAll(handles);
    comm.Barrier();  // runs after the dropped call
  }
  REQUIRE(all.back() == 7 && part.back() == 7 && (comm.rank() != 0 || root.back() == 7));
  REQUIRE(alive == 0);
  const auto of_null = [&] {
    comm.AsyncAllreduceBy(static_cast<const int*>(nullptr), all.data(), 1, Lower(&alive));
  };
  REQUIRE(Has(ErrorOf(of_null), "the buffer of 1 elements is NULL"));
  const auto with_timeout = [&] {
    comm.AsyncAllreduceBy(own.data(), all.data(), own.size(), Lower(&alive), {"gradients", -1});
  };
  REQUIRE(Has(ErrorOf(with_timeout), "WarrenAllreduceCustomAsync 'gradients': a timeout of -1 s"));
  REQUIRE(alive == 0);
}

void CheckHandles(const Communicator& comm) {
  const warren::CallOptions options("a call", 60);
  const auto size = static_cast<std::size_t>(comm.size());
  const auto rank = static_cast<std::size_t>(comm.rank());
  const auto counts = Rising(comm);
  const auto of_root = comm.rank() == 0 ? counts : std::vector<std::size_t>();
  const int next = (comm.rank() + 1) % comm.size();
  const int before = (comm.rank() + comm.size() - 1) % comm.size();
  std::vector<int> ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<int> expected;
  for (std::size_t r = 0; r < size; ++r) expected.insert(expected.end(), r, static_cast<int>(r));
  const auto mine = Filled(rank, comm.rank());
  const auto sum = static_cast<int>(size * (size - 1) / 2);
  const auto large = Filled(100'000, comm.rank());

  std::vector<int> reduced(large.size());
  std::vector<int> at_root(1);
  std::vector<int> slice(1);
  std::vector<int> slices(rank);
  std::vector<int> value(1, comm.rank());
  std::vector<int> all(size);
  std::vector<int> all_ragged(expected.size());
  std::vector<int> gathered(size);
  std::vector<int> gathered_ragged(expected.size());
  std::vector<int> part(1, -1);
  std::vector<int> parts(rank);
  std::vector<int> from_all(size);
  std::vector<int> from_all_ragged(rank * size);
  std::vector<int> received(1);
  std::vector<warren::Handle> handles;
  handles.push_back(comm.AsyncAllreduce(large.data(), reduced.data(), large.size(), Op::kSum, options));
  handles.push_back(comm.AsyncReduce(&ranks[rank], at_root.data(), 1, Op::kMax, 0, options));
  handles.push_back(comm.AsyncReduceScatter(ranks.data(), slice.data(), 1, Op::kSum, options));
  handles.push_back(comm.AsyncReduceScatter(expected.data(), slices.data(), counts, Op::kMax, options));
  handles.push_back(comm.AsyncBroadcast(value.data(), 1, comm.size() - 1, options));
  handles.push_back(comm.AsyncAllgather(&ranks[rank], all.data(), 1, options));
  handles.push_back(comm.AsyncAllgather(mine.data(), all_ragged.data(), counts, options));
  handles.push_back(comm.AsyncGather(&ranks[rank], gathered.data(), 1, 0, options));
  handles.push_back(comm.AsyncGather(mine.data(), rank, gathered_ragged.data(), of_root, 0, options));
  handles.push_back(comm.AsyncScatter(ranks.data(), part.data(), 1, 0, options));
  handles.push_back(comm.AsyncScatter(expected.data(), of_root, parts.data(), rank, 0, options));
  handles.push_back(comm.AsyncAllToAll(ranks.data(), from_all.data(), 1, options));
  handles.push_back(
      comm.AsyncAllToAll(expected.data(), counts, from_all_ragged.data(), Filled(size, rank), options));
  handles.push_back(comm.AsyncBarrier(options));
  handles.push_back(comm.AsyncSendRecv(&ranks[rank], 1, next, received.data(), 1, before, options));
  std::vector<double> many(50'000, 3.0);
  if (comm.size() > 1 && comm.rank() == 0)
    handles.push_back(comm.AsyncSend(many.data(), many.size(), 1, options));
  if (comm.rank() == 1) {
    many.assign(many.size(), 0.0);
    handles.push_back(comm.AsyncRecv(many.data(), many.size(), 0, options));
  }
  std::atomic<int> called = 0;
  handles.back().WhenDone([&](const char* error) { called += error == nullptr ? 1 : 100; });
  warren::WaitAll(handles);
  while (called.load() == 0) usleep(100);
  REQUIRE(called.load() == 1);
  REQUIRE(handles.front().Test());
  REQUIRE(reduced.back() == sum && slice[0] == static_cast<int>(rank * size) && slices == mine);
  REQUIRE(comm.rank() != 0 || at_root[0] == comm.size() - 1);
  REQUIRE(value[0] == comm.size() - 1 && all == ranks && all_ragged == expected);
  REQUIRE(comm.rank() != 0 || (gathered == ranks && gathered_ragged == expected));
  REQUIRE(part[0] == comm.rank() && parts == mine);
  REQUIRE(from_all == Filled(size, comm.rank()) && from_all_ragged == Filled(rank * size, comm.rank()));
  REQUIRE(received[0] == before && many.back() == 3.0);

  // Calls are carried out in order even if their handles are dropped.
  for (int i = 0; i < 100; ++i) comm.AsyncAllreduce(value.data(), value.data(), 1, Op::kMin);
  int last = comm.rank() == comm.size() - 1 ? 1 : 0;
  comm.Allreduce(&last, 1, Op::kMax);
  REQUIRE(last == 1 && value[0] == comm.size() - 1);
}

/// Checks calls on two communicators, which the ranks make in different orders.
void CheckOrders(const Communicator& world) {
  const Communicator one = world.Split(0);
  const Communicator other = world.Split(0);
  for (int i = 0; i < 50; ++i) {
    std::vector<float> a(static_cast<std::size_t>(i) * 500 + 1, 1.0F);
    std::vector<float> b = a;
    const bool swapped = (world.rank() + i) % 2 == 1;
    std::vector<warren::Handle> handles;
    for (const bool first : {!swapped, swapped}) {
      auto& buffer = first ? a : b;
      handles.push_back(
          (first ? one : other).AsyncAllreduce(buffer.data(), buffer.data(), buffer.size(), Op::kSum));
    }
    if (i % 2 == 0) std::swap(handles[0], handles[1]);
    warren::WaitAll(handles);
    REQUIRE(a.back() == static_cast<float>(world.size()) && b.front() == static_cast<float>(world.size()));
  }
}

void CheckAll(const Communicator& comm) {
  CheckSums<std::int32_t>(comm);
  CheckSums<std::uint64_t>(comm);
  CheckSums<float>(comm);
  CheckSums<double>(comm);
  CheckSums<rabit::Float16>(comm);
  CheckSums<rabit::BFloat16>(comm);
  CheckAverages(comm);
  CheckReduceScatters(comm);
  CheckFunctions(comm);
  CheckSlices(comm);
  CheckMessages(comm);
  CheckHandles(comm);
  CheckFunctionsWithoutWaiting(comm);
}

int Check() {
  const Communicator world = warren::World();
  CheckAll(world);
  CheckOrders(world);
  const Communicator half = world.Split(world.rank() % 2, -world.rank());
  REQUIRE(half.RankInWorld(half.rank()) == world.rank());
  CheckAll(half);
  if (const Communicator some = world.Split(world.rank() == 0 ? -1 : 0)) CheckAll(some);
  std::vector<int> backwards;
  for (int rank = world.size(); rank-- > 0;) backwards.push_back(rank);
  const Communicator reversed = world.Create(backwards);
  REQUIRE(reversed.rank() == world.size() - 1 - world.rank());
  CheckAll(reversed);
  const Communicator host = world.Local();
  const Communicator across = world.Cross();
  std::printf("rank %d is %d of %d on its host and %d of %d across\n", world.rank(), host.rank(), host.size(),
              across.rank(), across.size());
  CheckAll(host);
  CheckAll(across);
  REQUIRE(Has(ErrorOf([&] { world.Allreduce(static_cast<float*>(nullptr), 1, Op::kSum); }),
              "WarrenAllreduce: the buffer of 1 elements is NULL"));
  world.Barrier();
  return 0;
}

/// All ranks of the world except `victim` make the call. `timeout_seconds` applies to asynchronous
/// operations.
int Wait(const std::string& operation, int victim, double timeout_seconds) {
  const Communicator world = warren::World();
  const Communicator comm = world.Split(0, -world.rank());
  const auto size = static_cast<std::size_t>(comm.size());
  std::vector<float> a(100'000 * size, 1.0F);
  std::vector<float> b(a.size());
  const int of_victim = comm.size() - 1 - victim;
  const std::map<std::string, std::function<void()>> operations = {
      {"allreduce", [&] { comm.Allreduce(a.data(), b.data(), a.size(), Op::kSum); }},
      {"small allreduce", [&] { comm.Allreduce(a.data(), b.data(), 1, Op::kSum); }},
      {"reduce", [&] { comm.Reduce(a.data(), b.data(), a.size(), Op::kSum, of_victim); }},
      {"reduce-scatter", [&] { comm.ReduceScatter(a.data(), b.data(), a.size() / size, Op::kSum); }},
      {"broadcast", [&] { comm.Broadcast(a.data(), a.size(), of_victim); }},
      {"allgather", [&] { comm.Allgather(a.data(), b.data(), a.size() / size); }},
      {"gather", [&] { comm.Gather(a.data(), b.data(), a.size() / size, of_victim); }},
      {"scatter", [&] { comm.Scatter(a.data(), b.data(), a.size() / size, of_victim); }},
      {"all-to-all", [&] { comm.AllToAll(a.data(), b.data(), a.size() / size); }},
      {"barrier", [&] { comm.Barrier(); }},
      {"receive", [&] { comm.Recv(a.data(), a.size(), of_victim); }},
      {"send", [&] { comm.Send(a.data(), a.size(), of_victim); }},
      {"split", [&] { comm.Split(0); }},
  };
  // The asynchronous operations, whose errors are reported by their handles.
  const warren::CallOptions options("gradients", timeout_seconds);
  std::map<std::string, std::function<warren::Handle()>> begun = {
      {"handle", [&] { return comm.AsyncAllreduce(a.data(), b.data(), a.size(), Op::kSum, options); }},
      {"handle of a message", [&] { return comm.AsyncRecv(a.data(), a.size(), of_victim, options); }},
      {"handle of a small allreduce",
       [&] { return comm.AsyncAllreduce(a.data(), b.data(), 1, Op::kSum, options); }},
      {"handle of an all-to-all",
       [&] { return comm.AsyncAllToAll(a.data(), b.data(), a.size() / size, options); }},
      {"handle of a broadcast", [&] { return comm.AsyncBroadcast(a.data(), a.size(), of_victim, options); }},
      {"handle of a barrier", [&] { return comm.AsyncBarrier(options); }},
  };
  comm.Barrier();
  std::printf("rank %d\n", world.rank());
  std::fflush(stdout);
  if (world.rank() == victim) pause();
  if (begun.count(operation) != 0) {
    warren::Handle handle = begun.at(operation)();
    while (!handle.Test()) usleep(1000);  // the call proceeds by itself
    handle.Wait();
  } else {
    operations.at(operation)();
  }
  // A root or a sender may finish the call before it can notice the loss.
  comm.Barrier();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  try {
    warren::Init(argc, argv);
    const int result = mode == "wait"   ? Wait(argv[2], std::atoi(argv[3]), 0)
                       : mode == "late" ? Wait(argv[2], std::atoi(argv[3]), 0.3)
                                        : Check();
    if (result == 0) warren::Finalize();
    return result;
  } catch (const warren::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
