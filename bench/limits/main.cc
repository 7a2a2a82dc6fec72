// machine-limits: measures the best this machine can do: copying and adding in memory, passing a cache line
// between cores, one plain TCP stream, and exchanges over it. Prints lines of JSON, which bench/compare shows
// next to its tables.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <barrier>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kExitFailed = 1;
constexpr int kRepetitions = 9;
/// One repetition processes as many buffers as fit into this many bytes, and at least one.
constexpr std::size_t kLeastWork = std::size_t{64} << 20;
/// The bytes that the sender of the stream writes at a time, and in one repetition.
constexpr std::size_t kPieceBytes = std::size_t{256} << 10;
constexpr std::size_t kStreamBytes = std::size_t{512} << 20;
constexpr int kRoundTrips = 5000;
/// The message sizes of an exchange: 8 bytes, 4 KiB and 1 MiB, each after a header of 32 bytes.
constexpr std::size_t kExchangedBytes[] = {40, 4096 + 32, (std::size_t{1} << 20) + 32};
/// One repetition exchanges about this many bytes each way, but makes at most kMostExchanges exchanges.
constexpr std::size_t kLeastExchanged = std::size_t{64} << 20;
constexpr int kMostExchanges = 5000;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void Copy(float* to, const float* from, std::size_t count) {
  std::memcpy(to, from, count * sizeof(float));
}

void Add(float* to, const float* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] += from[i];
}

/// Returns the payload bytes per second and thread if `threads` threads do `work` concurrently, each on two
/// buffers of `bytes` bytes.
double MemoryRate(void (*work)(float*, const float*, std::size_t), std::size_t bytes, int threads) {
  const std::size_t count = bytes / sizeof(float);
  const std::size_t passes = std::max<std::size_t>(1, kLeastWork / bytes);
  std::vector<std::vector<double>> rates(threads);
  std::barrier together(threads);
  std::vector<std::thread> crew;
  crew.reserve(threads);
  for (int t = 0; t < threads; ++t) {
    crew.emplace_back([&, t] {
      std::vector<float> to(count, 0.0F);
      const std::vector<float> from(count, 0.0F);
      for (int repetition = 0; repetition < kRepetitions; ++repetition) {
        together.arrive_and_wait();
        const auto start = Clock::now();
        for (std::size_t pass = 0; pass < passes; ++pass) {
          work(to.data(), from.data(), count);
          std::atomic_signal_fence(std::memory_order_seq_cst);  // keeps the compiler from merging passes
        }
        rates[t].push_back(static_cast<double>(bytes * passes) / SecondsSince(start));
      }
    });
  }
  for (std::thread& member : crew) member.join();
  double sum = 0;
  for (const auto& of_thread : rates) sum += Median(of_thread);
  return sum / threads;
}

void MeasureMemory(const std::vector<std::size_t>& sizes) {
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  for (const std::size_t bytes : sizes) {
    fmt::print("{{\"bytes\": {}, \"copy\": {:.4g}, \"add\": {:.4g}, \"copy_all_cores\": {:.4g}, ", bytes,
               MemoryRate(Copy, bytes, 1), MemoryRate(Add, bytes, 1), MemoryRate(Copy, bytes, cores));
    fmt::print("\"add_all_cores\": {:.4g}}}\n", MemoryRate(Add, bytes, cores));
    std::fflush(stdout);
  }
}

/// The number of round trips of a cache line in one repetition.
constexpr int kLineTrips = 500;

void RunOn(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(0, sizeof(set), &set);  // if not allowed, the kernel chooses the core
}

/// Returns the time, in seconds, that a cache line takes to move from one core to the other: the mean over
/// the fastest repetition.
double LineTime(int one, int other) {
  alignas(64) std::atomic<int> ball{0};
  const auto play = [&ball](int core, int mine, auto after) {
    RunOn(core);
    for (int repetition = 0; repetition < kRepetitions; ++repetition) {
      const auto start = Clock::now();
      for (int trip = 0; trip < kLineTrips; ++trip) {
        for (int turn = 1; ball.load(std::memory_order_acquire) != mine; ++turn) {
          if (turn % 100'000 == 0) std::this_thread::yield();  // in case both threads are on one core
        }
        ball.store(1 - mine, std::memory_order_release);
      }
      after(SecondsSince(start));
    }
  };
  double best = 1;
  std::thread partner(play, other, 1, [](double) {});
  play(one, 0, [&best](double seconds) { best = std::min(best, seconds / kLineTrips / 2); });
  partner.join();
  return best;
}

/// Prints how long a cache line takes to move between each pair of cores that this process may use.
void MeasureLines() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) throw std::runtime_error("no list of cores");
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  std::vector<std::string> pairs;
  for (std::size_t one = 0; one < cores.size(); ++one) {
    for (std::size_t other = one + 1; other < cores.size(); ++other) {
      pairs.push_back(
          fmt::format("\"{}-{}\": {:.4g}", cores[one], cores[other], LineTime(cores[one], cores[other])));
    }
  }
  fmt::print("{{{}}}\n", fmt::join(pairs, ", "));
}

[[noreturn]] void ThrowErrno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {
    if (descriptor_ < 0) ThrowErrno("socket");
  }
  ~Socket() { close(descriptor_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int descriptor() const { return descriptor_; }

  void SendAtOnce() const {
    const int on = 1;
    setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  /// Selects Reno, since the pacing of BBR slows loopback down.
  void DoNotPace() const { setsockopt(descriptor_, IPPROTO_TCP, TCP_CONGESTION, "reno", 4); }
  void Write(const char* data, std::size_t bytes) const {
    while (bytes > 0) {
      const ssize_t done = send(descriptor_, data, bytes, MSG_NOSIGNAL);
      if (done < 0) ThrowErrno("send");
      data += done;
      bytes -= static_cast<std::size_t>(done);
    }
  }
  void Read(char* data, std::size_t bytes) const {
    while (bytes > 0) {
      const ssize_t done = recv(descriptor_, data, bytes, 0);
      if (done < 0) ThrowErrno("recv");
      if (done == 0) throw std::runtime_error("the other end of the stream has closed it");
      data += done;
      bytes -= static_cast<std::size_t>(done);
    }
  }

  /// Sends and receives `bytes` bytes without sleeping.
  void Exchange(const char* data, char* received, std::size_t bytes) const {
    std::size_t sent = 0;
    std::size_t got = 0;
    while (sent < bytes || got < bytes) {
      if (sent < bytes)
        sent += Moved(send(descriptor_, data + sent, bytes - sent, MSG_NOSIGNAL | MSG_DONTWAIT));
      if (got < bytes) {
        const ssize_t done = recv(descriptor_, received + got, bytes - got, MSG_DONTWAIT);
        if (done == 0) throw std::runtime_error("the other end of the stream has closed it");
        got += Moved(done);
      }
    }
  }

 private:
  static std::size_t Moved(ssize_t done) {
    if (done >= 0) return static_cast<std::size_t>(done);
    if (errno != EAGAIN && errno != EWOULDBLOCK) ThrowErrno("exchange");
    return 0;
  }

  int descriptor_;
};

/// Returns the median seconds of one exchange of `bytes` bytes each way. Both ends must call this.
double ExchangeTime(const Socket& stream, std::size_t bytes) {
  const std::vector<char> data(bytes, 'x');
  std::vector<char> received(bytes);
  const int times = static_cast<int>(std::min<std::size_t>(kMostExchanges, kLeastExchanged / bytes));
  std::vector<double> seconds;
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    const auto start = Clock::now();
    for (int i = 0; i < times; ++i) stream.Exchange(data.data(), received.data(), bytes);
    seconds.push_back(SecondsSince(start) / times);
  }
  return Median(seconds);
}

sockaddr_in Address(const std::string& host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1)
    throw std::invalid_argument(fmt::format("'{}': expected an IPv4 address", host));
  return address;
}

bool IsLoopback(const sockaddr_in& address) {
  return (ntohl(address.sin_addr.s_addr) >> 24) == 127;
}

/// Accepts one connection. Echoes single bytes, whose round trips are measured, then receives the stream,
/// acknowledging each repetition with a single byte, and finally exchanges messages.
void Receive(const std::string& host) {
  const Socket listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = Address(host, 0);
  socklen_t length = sizeof address;
  auto* general = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener.descriptor(), general, length) != 0) ThrowErrno("bind");
  if (listen(listener.descriptor(), 1) != 0) ThrowErrno("listen");
  if (getsockname(listener.descriptor(), general, &length) != 0) ThrowErrno("getsockname");
  fmt::print("{{\"port\": {}}}\n", ntohs(address.sin_port));
  std::fflush(stdout);

  const Socket stream(accept(listener.descriptor(), nullptr, nullptr));
  stream.SendAtOnce();
  if (IsLoopback(address)) stream.DoNotPace();
  std::vector<char> piece(kPieceBytes);
  char byte = 0;
  for (int i = 0; i < kRoundTrips; ++i) {
    stream.Read(&byte, 1);
    stream.Write(&byte, 1);
  }
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    for (std::size_t done = 0; done < kStreamBytes; done += kPieceBytes)
      stream.Read(piece.data(), kPieceBytes);
    stream.Write(&byte, 1);
  }
  for (const std::size_t bytes : kExchangedBytes) ExchangeTime(stream, bytes);
}

void Send(const std::string& host, int port) {
  const Socket stream(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = Address(host, port);
  if (connect(stream.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    ThrowErrno("connect");
  stream.SendAtOnce();
  if (IsLoopback(address)) stream.DoNotPace();
  const std::vector<char> piece(kPieceBytes);
  char byte = 0;
  std::vector<double> trips;
  for (int i = 0; i < kRoundTrips; ++i) {
    const auto start = Clock::now();
    stream.Write(&byte, 1);
    stream.Read(&byte, 1);
    trips.push_back(SecondsSince(start));
  }
  std::vector<double> rates;
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    const auto start = Clock::now();
    for (std::size_t done = 0; done < kStreamBytes; done += kPieceBytes)
      stream.Write(piece.data(), kPieceBytes);
    stream.Read(&byte, 1);
    rates.push_back(static_cast<double>(kStreamBytes) / SecondsSince(start));
  }
  std::vector<std::string> exchanges;
  for (const std::size_t bytes : kExchangedBytes)
    exchanges.push_back(fmt::format("\"{}\": {:.4g}", bytes, ExchangeTime(stream, bytes)));
  fmt::print("{{\"stream\": {:.4g}, \"half_round_trip_s\": {:.4g}, \"exchange_s\": {{{}}}}}\n", Median(rates),
             Median(trips) / 2, fmt::join(exchanges, ", "));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Measures what this machine can do at best, in bytes a second; prints JSON.");
  app.require_subcommand(1);
  std::vector<std::size_t> sizes;
  std::string host = "127.0.0.1";
  int port = 0;
  auto* memory = app.add_subcommand("memory", "copying, and adding in place, on one core and on all at once");
  memory->add_option("sizes", sizes, "bytes of the buffers")->required();
  const auto* lines = app.add_subcommand("lines", "seconds of a cache line between every two cores");
  auto* receive = app.add_subcommand("receive", "the receiving end of a stream; prints its port first");
  receive->add_option("--host", host, "own address")->capture_default_str();
  auto* transmit = app.add_subcommand("send", "the sending end of a stream; prints its rate");
  transmit->add_option("--host", host, "the receiver's address")->capture_default_str();
  transmit->add_option("--port", port, "the receiver's port")->required();
  CLI11_PARSE(app, argc, argv);
  try {
    if (memory->parsed()) MeasureMemory(sizes);
    if (lines->parsed()) MeasureLines();
    if (receive->parsed()) Receive(host);
    if (transmit->parsed()) Send(host, port);
  } catch (const std::exception& error) {
    fmt::print(stderr, "machine-limits: {}\n", error.what());
    return kExitFailed;
  }
  return 0;
}
