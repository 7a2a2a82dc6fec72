// A program that uses the named operations of warren/collectives.h.
//   random SEED    operations of most kinds by name, in each rank's own order and from two threads; exit
//                  code 1 unless each result equals the plain call's result bit for bit
//   wrong          ranks that use one name for different operations, alone and in a group
//   stall          rank 1 does not submit "x" for three seconds
//   give-up        rank 1 never submits "x", and the others get an error
//   join           rank r has r + 1 batches
//   leave          rank 1 ends the named operations while others wait
//   storm SEED     prints "rank N", then repeats sums with new and known names, joins, and creates the named
//                  operations again, until an error; exit code 2 and its message
//   wait RANK [S]  prints "rank N" once set up; rank RANK then submits nothing, and the others wait for it,
//                  for at most S seconds if given; exit code 2 and a message on an error
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/rabit_engine/matrix/require.h"
#include "warren/collectives.h"

namespace {

using warren::Communicator;
using warren::Coordinator;
using warren::CoordinatorOptions;
using warren::EnqueueOptions;
using warren::Handle;
using warren::Op;
using warren::testing::ErrorOf;
using warren::testing::Has;

/// One operation of a program, with this rank's buffers and the result of the plain call.
struct Step {
  std::string name;
  std::function<Handle()> enqueue;
  std::function<bool()> is_right;
};

template <typename T>
std::vector<T> Numbers(std::mt19937& random, std::size_t count) {
  std::vector<T> numbers(count);
  for (T& number : numbers) number = static_cast<T>(static_cast<float>(random() % 1000) / 7 - 50);
  return numbers;
}

template <typename T>
bool Same(const std::vector<T>& one, const std::vector<T>& two) {
  return one.size() == two.size() &&
         (one.empty() || std::memcmp(one.data(), two.data(), one.size() * sizeof(T)) == 0);
}

template <typename T>
Step Allreduce(const Communicator& world, const Coordinator& named, const std::string& name,
               std::mt19937& own, std::size_t count, Op op, bool in_place, const EnqueueOptions& options) {
  auto send = std::make_shared<std::vector<T>>(Numbers<T>(own, count));
  auto recv = std::make_shared<std::vector<T>>(in_place ? *send : std::vector<T>(count));
  auto expected = std::make_shared<std::vector<T>>(count);
  world.Allreduce(send->data(), expected->data(), count, op);
  return {name,
          [=] {
            return named.EnqueueAllreduce(name, in_place ? recv->data() : send->data(), recv->data(), count,
                                          op, options);
          },
          [=] { return Same(*recv, *expected); }};
}

/// Returns a random operation. `shared` yields the same numbers on all ranks, and `own` different numbers on
/// each.
Step RandomStep(const Communicator& world, const Coordinator& named, const std::string& name,
                std::mt19937& shared, std::mt19937& own, const EnqueueOptions& options) {
  const std::size_t sizes[] = {0, 1, 3, 100, 1'000, 20'000, 300'000};
  const std::size_t count = sizes[shared() % 7];
  const auto size = static_cast<std::size_t>(world.size());
  const bool in_place = shared() % 2 == 0;
  std::vector<std::size_t> counts(size);
  for (std::size_t& one : counts) one = shared() % 4 * (count / 4);
  const std::size_t total = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  const std::size_t mine = counts[static_cast<std::size_t>(world.rank())];
  const int root = static_cast<int>(shared() % size);
  switch (shared() % 9) {
    case 0:
      return Allreduce<double>(world, named, name, own, count, Op::kSum, in_place, options);
    case 1:
      return Allreduce<float>(world, named, name, own, count, Op::kAverage, in_place, options);
    case 2:
      return Allreduce<rabit::BFloat16>(world, named, name, own, count, Op::kAverage, in_place, options);
    case 3:
      return Allreduce<int>(world, named, name, own, count, Op::kMax, in_place, options);
    case 4: {
      auto buffer = std::make_shared<std::vector<float>>(Numbers<float>(own, count));
      auto expected = std::make_shared<std::vector<float>>(*buffer);
      world.Broadcast(expected->data(), count, root);
      return {name, [=] { return named.EnqueueBroadcast(name, buffer->data(), count, root, options); },
              [=] { return Same(*buffer, *expected); }};
    }
    case 5: {
      auto send = std::make_shared<std::vector<float>>(Numbers<float>(own, mine));
      auto recv = std::make_shared<std::vector<float>>(total);
      auto expected = std::make_shared<std::vector<float>>(total);
      world.Allgather(send->data(), expected->data(), counts);
      return {name, [=] { return named.EnqueueAllgather(name, send->data(), recv->data(), counts, options); },
              [=] { return Same(*recv, *expected); }};
    }
    case 6: {
      auto send = std::make_shared<std::vector<float>>(Numbers<float>(own, total));
      auto recv = std::make_shared<std::vector<float>>(mine);
      auto expected = std::make_shared<std::vector<float>>(mine);
      world.ReduceScatter(send->data(), expected->data(), counts, Op::kSum);
      return {name,
              [=] {
                return named.EnqueueReduceScatter(name, send->data(), recv->data(), counts, Op::kSum,
                                                  options);
              },
              [=] { return Same(*recv, *expected); }};
    }
    case 7: {
      const std::vector<std::size_t> equal(size, count / size);
      auto send = std::make_shared<std::vector<float>>(Numbers<float>(own, count / size * size));
      auto recv = std::make_shared<std::vector<float>>(send->size());
      auto expected = std::make_shared<std::vector<float>>(send->size());
      world.AllToAll(send->data(), expected->data(), count / size);
      return {name,
              [=] { return named.EnqueueAllToAll(name, send->data(), equal, recv->data(), equal, options); },
              [=] { return Same(*recv, *expected); }};
    }
    default:
      return Allreduce<float>(world, named, name, own, count, Op::kSum, in_place, options);
  }
}

int Random(unsigned seed) {
  const Communicator world = warren::World();
  std::mt19937 shared(seed);
  std::mt19937 own(seed * 1000 + static_cast<unsigned>(world.rank()) + 1);
  CoordinatorOptions options;
  options.cycle_us = static_cast<int>(shared() % 3) * 300;
  const long long fusions[] = {0, 10'000, 1 << 20, 64 << 20};
  options.fusion_bytes = fusions[shared() % 4];
  options.autotune = shared() % 4 == 0 ? 1 : 0;
  const Coordinator named(world, options);
  for (int round = 0; round < 6; ++round) {
    // Every other round repeats the same names, in the same shapes.
    std::mt19937 shapes(round % 2 == 0 ? seed : static_cast<unsigned>(shared()));
    const std::size_t num_steps = 1 + shapes() % 60;
    const std::size_t grouped = shapes() % 2 == 0 ? 0 : shapes() % num_steps;
    std::vector<Step> steps;
    for (std::size_t i = 0; i < num_steps; ++i) {
      const int priority = static_cast<int>(shapes() % 3);
      const EnqueueOptions how =
          i < grouped ? EnqueueOptions("g", grouped, priority) : EnqueueOptions(priority);
      steps.push_back(RandomStep(world, named, std::string("n").append(std::to_string(i)), shapes, own, how));
    }
    std::vector<std::size_t> order(num_steps);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), own);
    std::vector<Handle> handles(num_steps);
    const auto enqueue = [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) handles[order[i]] = steps[order[i]].enqueue();
    };
    std::thread other(enqueue, num_steps / 2, num_steps);
    enqueue(0, num_steps / 2);
    if (own() % 2 == 0) usleep(own() % 3'000);
    other.join();
    std::shuffle(order.begin(), order.end(), own);
    for (const std::size_t i : order) {
      handles[i].Wait();
      REQUIRE(steps[i].is_right());
    }
  }
  world.Barrier();
  return 0;
}

int Wrong() {
  const Communicator world = warren::World();
  const Coordinator named(world);
  float x[4] = {1, 1, 1, 1};
  float y = 1;
  for (int round = 0; round < 2; ++round) {
    Handle wrong = named.EnqueueAllreduce("x", x, x, world.rank() == 1 ? 4 : 3, Op::kSum);
    Handle right = named.EnqueueAllreduce("y", &y, &y, 1, Op::kMax);
    const std::string error = ErrorOf([&] { wrong.Wait(); });
    REQUIRE(Has(error, "the ranks use the name 'x'"));
    REQUIRE(Has(error, "an allreduce (sum) of 4 elements of float"));
    right.Wait();
    float one = 1;
    Handle first = named.EnqueueAllreduce("first", &one, &one, 1, Op::kSum, EnqueueOptions("g", 2));
    Handle second =
        named.EnqueueBroadcast("second", &y, 1, world.rank() == 1 ? 1 : 0, EnqueueOptions("g", 2));
    REQUIRE(Has(ErrorOf([&] { first.Wait(); }), "'second'"));
    REQUIRE(Has(ErrorOf([&] { second.Wait(); }), "a broadcast from rank 1 of 4 bytes"));
    REQUIRE(one == 1);
  }
  // The same name twice; an empty name.
  Handle once = named.EnqueueBarrier("b");
  const std::string again = ErrorOf([&] { named.EnqueueBarrier("b"); });
  // In a world of one, the first may have ended.
  REQUIRE(again.empty() ? world.size() == 1 : Has(again, "'b' is under way already"));
  once.Wait();
  REQUIRE(Has(ErrorOf([&] { named.EnqueueBarrier(""); }), "has no name"));
  // Counts for another number of ranks.
  const std::vector<std::size_t> right_counts(static_cast<std::size_t>(world.size()), 1);
  const std::vector<std::size_t> wrong_counts(right_counts.size() + 1, 1);
  const std::function<void()> calls[] = {
      [&] { named.EnqueueReduceScatter("c", x, &y, wrong_counts, Op::kSum); },
      [&] { named.EnqueueAllgather("c", &y, x, wrong_counts); },
      [&] { named.EnqueueAllToAll("c", x, wrong_counts, x, right_counts); },
      [&] { named.EnqueueAllToAll("c", x, right_counts, x, wrong_counts); },
      [&] { named.EnqueueAllgather("c", &y, x, {}); },
  };
  for (const auto& call : calls) {
    REQUIRE(Has(ErrorOf(call), " counts were given for " + std::to_string(world.size()) + " ranks"));
  }
  world.Barrier();
  return 0;
}

int Stall() {
  const Communicator world = warren::World();
  CoordinatorOptions options;
  options.stall_warning_seconds = 1;
  const Coordinator named(world, options);
  double x = 1;
  if (world.rank() == 1) sleep(3);
  named.EnqueueAllreduce("x", &x, &x, 1, Op::kSum).Wait();
  REQUIRE(x == world.size());
  world.Barrier();
  return 0;
}

int GiveUp() {
  const Communicator world = warren::World();
  CoordinatorOptions options;
  options.stall_error_seconds = 1;
  const Coordinator named(world, options);
  double x = 1;
  double y = 1;
  if (world.rank() == 1) {
    usleep(700'000);  // so that "y" waits less than the limit
  } else {
    REQUIRE(Has(ErrorOf([&] { named.EnqueueAllreduce("x", &x, &x, 1, Op::kSum).Wait(); }),
                "but not on rank 1 for 1 s"));
  }
  named.EnqueueAllreduce("y", &y, &y, 1, Op::kSum).Wait();
  REQUIRE(x == 1 && y == world.size());
  world.Barrier();
  return 0;
}

int Join() {
  const Communicator world = warren::World();
  const Coordinator named(world);
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (int batch = 0; batch <= world.rank(); ++batch) {
      std::vector<double> sum(100, 1);
      std::vector<int> highest(50'000, world.rank());
      std::vector<rabit::Float16> average(3, rabit::Float16(8.0F));
      Handle a = named.EnqueueAllreduce("sum", sum.data(), sum.data(), sum.size(), Op::kSum);
      Handle b = named.EnqueueAllreduce("max", highest.data(), highest.data(), highest.size(), Op::kMax);
      Handle c =
          named.EnqueueAllreduce("average", average.data(), average.data(), average.size(), Op::kAverage);
      a.Wait();
      b.Wait();
      c.Wait();
      const int left = world.size() - batch;
      REQUIRE(sum[99] == left && highest[49'999] == world.size() - 1);
      REQUIRE(average[2] ==
              rabit::Float16(8.0F * static_cast<float>(left) / static_cast<float>(world.size())));
    }
    REQUIRE(named.Join() == world.size() - 1);
  }
  world.Barrier();
  return 0;
}

int Leave() {
  const Communicator world = warren::World();
  double x = 1;
  {
    const Coordinator named(world);
    if (world.rank() == 1) {
      usleep(200'000);
    } else {
      REQUIRE(Has(ErrorOf([&] { named.EnqueueAllreduce("x", &x, &x, 1, Op::kSum).Wait(); }),
                  "'x' was not ready everywhere before rank 1 ended the named operations"));
      REQUIRE(Has(ErrorOf([&] { named.EnqueueBarrier("b"); }), "rank 1 ended the named operations"));
    }
  }
  // The named operations can be created again.
  const Coordinator named(world);
  named.EnqueueAllreduce("x", &x, &x, 1, Op::kSum).Wait();
  REQUIRE(x == world.size());
  world.Barrier();
  return 0;
}

/// All ranks draw the same operations, but each rank submits them in its own order.
int Storm(unsigned seed) {
  const Communicator world = warren::World();
  std::mt19937 shared(seed);
  std::mt19937 own(seed * 1000 + static_cast<unsigned>(world.rank()) + 1);
  std::vector<std::vector<float>> values(40);
  world.Barrier();
  std::printf("rank %d\n", world.rank());
  std::fflush(stdout);
  for (int number = 0;;) {
    const Coordinator named(world);
    for (unsigned rounds = 1 + shared() % 20; rounds > 0; --rounds) {
      std::vector<std::string> names;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const bool is_new = shared() % 4 == 0;
        names.push_back(is_new ? "new" + std::to_string(number++) : "old" + std::to_string(i));
        values[i].assign(is_new ? shared() % 5'000 : 100 * i, 1.0F);
      }
      std::vector<std::size_t> order(values.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::shuffle(order.begin(), order.end(), own);
      std::vector<Handle> handles;
      for (const std::size_t i : order) {
        handles.push_back(
            named.EnqueueAllreduce(names[i], values[i].data(), values[i].data(), values[i].size(), Op::kSum));
      }
      warren::WaitAll(handles);
      if (shared() % 4 == 0) named.Join();
    }
  }
}

int Wait(int victim, double stall_error_seconds) {
  const Communicator world = warren::World();
  warren::CoordinatorOptions options;
  options.stall_error_seconds = stall_error_seconds;
  const Coordinator named(world, options);
  std::vector<float> x(100'000, 1);
  named.EnqueueAllreduce("x", x.data(), x.data(), x.size(), Op::kSum).Wait();
  world.Barrier();
  std::printf("rank %d\n", world.rank());
  std::fflush(stdout);
  if (world.rank() == victim) pause();
  named.EnqueueAllreduce("x", x.data(), x.data(), x.size(), Op::kSum).Wait();
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  try {
    warren::Init(argc, argv);
    int result = 1;
    if (mode == "random") result = Random(static_cast<unsigned>(std::atoi(argv[2])));
    if (mode == "wrong") result = Wrong();
    if (mode == "stall") result = Stall();
    if (mode == "give-up") result = GiveUp();
    if (mode == "join") result = Join();
    if (mode == "leave") result = Leave();
    if (mode == "storm") result = Storm(static_cast<unsigned>(std::atoi(argv[2])));
    if (mode == "wait") result = Wait(std::atoi(argv[2]), argc > 3 ? std::atof(argv[3]) : 0);
    if (result == 0) warren::Finalize();
    return result;
  } catch (const warren::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
