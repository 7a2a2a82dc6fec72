// loggp-parameters: measures the parameters of this machine for loggp-simulation over loopback; prints one
// line of JSON.
//
// Pairs of processes exchange messages concurrently. There are as many processes as ranks in the world, so
// that the measured calls cost as much as they do in that world, with equally full caches. The program
// measures a send, a receive, a receive that finds nothing, and a poll with epoll; large messages yield the
// costs per byte. (Over loopback, the kernel does the receiver's part of the protocol inside send.) The
// latency is half a round trip minus these costs; it is negative, because a message arrives before the call
// that sends it returns. The cost of a wake-up is measured with processes that sleep while they wait. The
// duration of a turn is a mean, the size of the buffer is measured once; all other values are medians.
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>
#include <functional>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "posix/descriptor.h"
#include "rabit_engine/reduce/reduction.h"

namespace {

using Clock = std::chrono::steady_clock;
using warren::DataType;
using warren::ReduceOp;
using warren::Reduction;
using warren::posix::Descriptor;

constexpr int kExitFailed = 1;
constexpr int kRepetitions = 2001;
constexpr int kRoundTrips = 10'001;
/// The number of exchanges by all processes together.
constexpr int kExchanges = 20'000;
constexpr int kLargeExchanges = 2'000;
constexpr int kSleeps = 201;
/// How long Turn() measures.
constexpr double kTurns_s = 0.1;
/// The size of a tag and 8 bytes of data.
constexpr std::size_t kSmall = 40;
constexpr std::size_t kLarge = std::size_t{256} << 10;

double SecondsBetween(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

[[noreturn]] void ThrowErrno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

/// The time between two successive readings of the clock, in seconds; every measurement includes it.
double ClockCost() {
  std::vector<double> seconds;
  for (int i = 0; i < kRepetitions; ++i) {
    const auto begin = Clock::now();
    seconds.push_back(SecondsBetween(begin, Clock::now()));
  }
  return Median(std::move(seconds));
}

/// Both ends of a loopback connection, with the engine's socket options.
struct Connection {
  Descriptor one;
  Descriptor other;
};

void Prepare(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

Connection Connect() {
  const Descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* general = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener.get(), general, length) != 0 || listen(listener.get(), 1) != 0) ThrowErrno("listen");
  if (getsockname(listener.get(), general, &length) != 0) ThrowErrno("getsockname");
  Connection connection;
  connection.one = Descriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(connection.one.get(), general, length) != 0) ThrowErrno("connect");
  connection.other = Descriptor(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!connection.other) ThrowErrno("accept");
  Prepare(connection.one.get());
  Prepare(connection.other.get());
  return connection;
}

/// Polls a descriptor for input, with or without waiting.
class Watch {
 public:
  explicit Watch(int fd) : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLET;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) ThrowErrno("epoll_ctl");
  }
  bool Poll(int timeout_ms) const {
    epoll_event event{};
    return epoll_wait(epoll_.get(), &event, 1, timeout_ms) > 0;
  }

 private:
  Descriptor epoll_;
};

pid_t Fork(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child < 0) ThrowErrno("fork");
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  body();
  _exit(0);
}

void Await(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
}

/// A player's way of waiting for a message.
enum class Waiting { kSpin, kYield, kSleep };

/// One end of a connection, which sends and receives messages of a fixed length. Measures its calls.
class Player {
 public:
  Player(int fd, std::size_t bytes) : fd_(fd), watch_(fd), memory_(bytes, 'x'), clock_cost_(ClockCost()) {}

  void Give() { Move(0, memory_.size(), Waiting::kSpin); }
  void Take(Waiting waiting) { Move(memory_.size(), 0, waiting); }
  void Swap(Waiting waiting) { Move(memory_.size(), memory_.size(), waiting); }

  double send_seconds() const { return Median(sends_); }
  double receive_seconds() const { return Median(receives_); }
  double miss_seconds() const { return Median(misses_); }
  double poll_seconds() const { return Median(polls_); }

 private:
  void Move(std::size_t to_receive, std::size_t to_send, Waiting waiting) {
    double in_sends = 0;
    double in_receives = 0;
    std::size_t sent = 0;
    std::size_t received = 0;
    while (sent < to_send || received < to_receive) {
      if (sent < to_send) {
        const auto begin = Clock::now();
        const ssize_t some = send(fd_, memory_.data() + sent, to_send - sent, MSG_NOSIGNAL);
        if (some > 0) {
          in_sends += Since(begin);
          sent += static_cast<std::size_t>(some);
        }
      }
      if (received == to_receive) continue;
      const auto begin = Clock::now();
      const ssize_t some = recv(fd_, memory_.data() + received, to_receive - received, 0);
      if (some > 0) {
        in_receives += Since(begin);
        received += static_cast<std::size_t>(some);
        continue;
      }
      if (some == 0) throw std::runtime_error("the other end has closed the link");
      misses_.push_back(Since(begin));
      if (sent == to_send) Await(waiting);
    }
    if (to_send > 0) sends_.push_back(in_sends);
    if (to_receive > 0) receives_.push_back(in_receives);
  }

  void Await(Waiting waiting) {
    for (;;) {
      const auto looked = Clock::now();
      if (watch_.Poll(waiting == Waiting::kSleep ? -1 : 0)) {
        polls_.push_back(Since(looked));
        return;
      }
      if (waiting == Waiting::kYield) sched_yield();
    }
  }

  double Since(Clock::time_point begin) const { return SecondsBetween(begin, Clock::now()) - clock_cost_; }

  int fd_;
  Watch watch_;
  std::vector<char> memory_;
  double clock_cost_;
  std::vector<double> sends_;
  std::vector<double> receives_;
  std::vector<double> misses_;
  std::vector<double> polls_;
};

struct CallCosts {
  double send = 0;
  double receive = 0;
  double miss = 0;
  double poll = 0;
  double all = 0;  ///< the whole exchange, or half a round trip
};

/// Repeats exchanges in `pairs` pairs of processes concurrently; both ends of each pair send simultaneously.
/// Returns the costs at one end.
CallCosts Exchange(std::size_t bytes, int times, int pairs, Waiting waiting) {
  std::vector<Connection> connections;
  connections.reserve(pairs);
  for (int i = 0; i < pairs; ++i) connections.push_back(Connect());
  const auto play = [&](int fd) {
    Player player(fd, bytes);
    std::vector<double> seconds;
    for (int i = 0; i < times; ++i) {
      const auto begin = Clock::now();
      player.Swap(waiting);
      seconds.push_back(SecondsBetween(begin, Clock::now()));
    }
    return CallCosts{player.send_seconds(), player.receive_seconds(), player.miss_seconds(),
                     player.poll_seconds(), Median(std::move(seconds))};
  };
  std::vector<pid_t> children;
  for (int i = 0; i < 2 * pairs - 1; ++i) {
    const Connection& connection = connections[i / 2];
    children.push_back(Fork([&] { play((i % 2 == 0 ? connection.other : connection.one).get()); }));
  }
  const CallCosts costs = play(connections.back().one.get());
  for (const pid_t child : children) Await(child);
  return costs;
}

CallCosts PingPong(std::size_t bytes, int trips, Waiting waiting) {
  const Connection connection = Connect();
  const pid_t child = Fork([&] {
    Player player(connection.other.get(), bytes);
    for (int i = 0; i < trips; ++i) {
      player.Take(waiting);
      player.Give();
    }
  });
  Player player(connection.one.get(), bytes);
  std::vector<double> seconds;
  for (int i = 0; i < trips; ++i) {
    // Gives the other end time to fall asleep.
    if (waiting == Waiting::kSleep) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const auto begin = Clock::now();
    player.Give();
    player.Take(waiting);
    seconds.push_back(SecondsBetween(begin, Clock::now()) / 2);
  }
  Await(child);
  return {player.send_seconds(), player.receive_seconds(), player.miss_seconds(), player.poll_seconds(),
          Median(std::move(seconds))};
}

/// The number of bytes that a connection accepts before its other end reads.
std::size_t BufferBytes() {
  const Connection connection = Connect();
  // Socket buffers grow with traffic, so data are exchanged first.
  std::vector<char> piece(kLarge);
  for (int i = 0; i < 200; ++i) {
    for (std::size_t done = 0, got = 0; got < kLarge;) {
      const ssize_t out =
          done < kLarge ? send(connection.one.get(), piece.data(), kLarge - done, MSG_NOSIGNAL) : 0;
      if (out > 0) done += static_cast<std::size_t>(out);
      const ssize_t in = recv(connection.other.get(), piece.data(), kLarge - got, 0);
      if (in > 0) got += static_cast<std::size_t>(in);
    }
  }
  std::size_t total = 0;
  for (;;) {
    const ssize_t out = send(connection.one.get(), piece.data(), piece.size(), MSG_NOSIGNAL);
    if (out <= 0) return total;
    total += static_cast<std::size_t>(out);
  }
}

/// Measures the CPU time, in seconds, that one of many waiting processes takes to poll once and yield its
/// core to the next.
double Turn(int processes) {
  void* memory =
      mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) ThrowErrno("mmap");
  auto& done = *new (memory) std::atomic<bool>(false);
  const auto take_turn = [](const Watch& watch) {
    watch.Poll(0);
    sched_yield();
  };
  std::vector<pid_t> children;
  const Connection connection = Connect();
  for (int i = 1; i < processes; ++i) {
    children.push_back(Fork([&] {
      const Watch watch(connection.one.get());
      while (!done.load()) take_turn(watch);
    }));
  }
  const Watch watch(connection.one.get());
  int turns = 0;
  const auto begin = Clock::now();
  while (SecondsBetween(begin, Clock::now()) < kTurns_s) {
    take_turn(watch);
    ++turns;
  }
  const double seconds = SecondsBetween(begin, Clock::now());
  done.store(true);
  for (const pid_t child : children) Await(child);
  munmap(memory, sizeof(std::atomic<bool>));
  return seconds / turns * static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN)) / processes;
}

/// The seconds that a reduction takes for each byte it reads. Its two inputs are in the cache.
double CombineByte() {
  const Reduction sum = Reduction::Typed(DataType::kFloat, ReduceOp::kSum);
  std::vector<float> left(kLarge / sizeof(float), 1.0F);
  std::vector<float> right(kLarge / sizeof(float), 1.0F);
  std::vector<double> seconds;
  for (int i = 0; i < kRepetitions; ++i) {
    const auto begin = Clock::now();
    sum.Combine(left.data(), left.data(), right.data(), left.size());
    seconds.push_back(SecondsBetween(begin, Clock::now()));
  }
  return Median(std::move(seconds)) / (2.0 * kLarge);
}

/// Prints the costs of the calls in a world of `processes` processes on this machine.
void PrintLevel(int processes) {
  const auto cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  const Waiting waiting = processes <= cores ? Waiting::kSpin : Waiting::kYield;
  const CallCosts small = Exchange(kSmall, kExchanges / processes, processes / 2, waiting);
  const CallCosts large = Exchange(kLarge, kLargeExchanges / processes, processes / 2, waiting);
  const auto per_byte = [](double of_large, double of_small) {
    return (of_large - of_small) / (kLarge - kSmall);
  };
  fmt::print("\"{}\": {{\"send\": {:.4g}, \"receive\": {:.4g}, \"miss\": {:.4g}, \"poll\": {:.4g}, ",
             processes, small.send, small.receive, small.miss, small.poll);
  fmt::print("\"send_byte\": {:.4g}, \"receive_byte\": {:.4g}, \"turn\": {:.4g}}}",
             per_byte(large.send, small.send), per_byte(large.receive, small.receive),
             std::max(0.0, Turn(processes) - small.poll));
}

void Measure(const std::vector<int>& levels) {
  fmt::print("{{\"levels\": {{");
  for (const int processes : levels) {
    if (processes != levels.front()) fmt::print(", ");
    PrintLevel(processes);
  }
  const CallCosts calm = PingPong(kSmall, kRoundTrips, Waiting::kSpin);
  const CallCosts sleeping = PingPong(kSmall, kSleeps, Waiting::kSleep);
  fmt::print(
      "}}, \"latency\": {:.4g}, \"wake\": {:.4g}, \"wake_up\": {:.4g}, \"buffer\": {}, \"combine\": {:.4g}}}\n",
      calm.all - calm.send - calm.poll - calm.receive, std::max(0.0, sleeping.send - calm.send),
      std::max(0.0, sleeping.all - calm.all), BufferBytes(), CombineByte());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Measures the parameters of this machine for loggp-simulation; prints JSON.");
  std::vector<int> levels = {2, 4, 8, 16, 64};
  app.add_option("processes", levels, "worlds with these (even) numbers of processes")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    Measure(levels);
  } catch (const std::exception& error) {
    fmt::print(stderr, "loggp-parameters: {}\n", error.what());
    return kExitFailed;
  }
  return 0;
}
