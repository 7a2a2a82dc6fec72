#include "bench/bootstrap_workers/fleet.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <stdexcept>

#include "bench/bootstrap_workers/crew.h"

namespace warren::bench {
namespace {

/// A worker's sockets: its tracker connection, its listening socket, five links, and one spare.
constexpr int kDescriptorsPerWorker = 8;
constexpr int kDescriptorsPerProcess = 64;
constexpr int kMaxProcesses = 64;

constexpr char kGo = 'g';
constexpr char kPhaseDone = 'd';
constexpr char kPhaseFailed = 'f';

int WorkersPerProcess() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) ThrowErrno("getrlimit");
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) ThrowErrno("setrlimit");
  const int descriptors = static_cast<int>(std::min<rlim_t>(limit.rlim_max, 1 << 20));
  return std::max(1, (descriptors - kDescriptorsPerProcess) / kDescriptorsPerWorker);
}

std::chrono::nanoseconds OwnCpuTime() {
  timespec time{};
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) != 0) ThrowErrno("clock_gettime");
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

bool SendByte(const Descriptor& socket, char byte) {
  return send(socket.get(), &byte, 1, MSG_NOSIGNAL) == 1;
}

/// Returns the other side's next byte, or 0 if the connection is closed.
char ReceiveByte(const Descriptor& socket) {
  char byte = 0;
  return recv(socket.get(), &byte, 1, 0) == 1 ? byte : char{0};
}

}  // namespace

/// The header of the shared memory, followed by the members. The clock is the same in all processes.
struct Fleet::Shared {
  struct PerProcess {
    Clock::time_point first_connect;
    Clock::time_point last_link;
    std::chrono::nanoseconds join_cpu;
    char error[256];
  };
  std::array<PerProcess, kMaxProcesses> processes;

  Membership* members() { return reinterpret_cast<Membership*>(this + 1); }
};

Fleet::Fleet(int num_workers, const WorkerOptions& options) : num_workers_(num_workers) {
  const int per_process = WorkersPerProcess();
  const int num_processes = (num_workers + per_process - 1) / per_process;
  if (num_processes > kMaxProcesses) {
    throw std::runtime_error("the limit on open files (ulimit -n) is too low for so many workers");
  }

  const std::size_t bytes = sizeof(Shared) + sizeof(Membership) * static_cast<std::size_t>(num_workers);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) ThrowErrno("mmap");
  shared_ = {new (memory) Shared{}, [bytes](Shared* shared) { munmap(shared, bytes); }};
  std::uninitialized_value_construct_n(shared_->members(), num_workers);

  const pid_t parent = getpid();
  for (int index = 0; index < num_processes; ++index) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) ThrowErrno("socketpair");
    Descriptor ours(ends[0]);
    const Descriptor theirs(ends[1]);
    const pid_t pid = fork();
    if (pid < 0) ThrowErrno("fork");
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);
      ours.reset();
      RunProcess(index, num_processes, theirs, options);
      _exit(0);
    }
    processes_.push_back({pid, std::move(ours)});
  }
}

Fleet::~Fleet() {
  for (const Process& process : processes_) kill(process.pid, SIGKILL);
  for (const Process& process : processes_) waitpid(process.pid, nullptr, 0);
}

/// The body of a forked process: runs its share of the workers, phase by phase.
void Fleet::RunProcess(int index, int num_processes, const Descriptor& control,
                       const WorkerOptions& options) {
  Shared::PerProcess& report = shared_->processes[index];
  const int begin = static_cast<int>(std::int64_t{num_workers_} * index / num_processes);
  const int end = static_cast<int>(std::int64_t{num_workers_} * (index + 1) / num_processes);
  const std::span<Membership> members(shared_->members() + begin, static_cast<std::size_t>(end - begin));
  try {
    Crew crew(begin, members, options);
    if (ReceiveByte(control) != kGo) return;
    const auto cpu_before = OwnCpuTime();
    report.first_connect = Clock::now();
    crew.Join();
    report.last_link = Clock::now();
    report.join_cpu = OwnCpuTime() - cpu_before;
    SendByte(control, kPhaseDone);
    if (ReceiveByte(control) != kGo) return;
    crew.ShutDown();
    SendByte(control, kPhaseDone);
    ReceiveByte(control);  // waits, because closing thousands of links now would disturb the other processes
  } catch (const std::exception& error) {
    std::strncpy(report.error, error.what(), sizeof report.error - 1);
    SendByte(control, kPhaseFailed);
  }
}

Fleet::Outcome Fleet::RunPhase(Clock::time_point deadline) {
  std::vector<pollfd> waiting;
  for (const Process& process : processes_) {
    if (!SendByte(process.control, kGo)) return Outcome::kFailed;
    waiting.push_back({process.control.get(), POLLIN, 0});
  }
  while (!waiting.empty()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    const int count = left <= 0 ? 0 : poll(waiting.data(), waiting.size(), static_cast<int>(left));
    if (count < 0 && errno != EINTR) ThrowErrno("poll");
    if (count == 0) return Outcome::kTimedOut;
    for (const pollfd& entry : waiting) {
      char said = 0;
      if (entry.revents != 0 && (recv(entry.fd, &said, 1, 0) != 1 || said != kPhaseDone))
        return Outcome::kFailed;
    }
    std::erase_if(waiting, [](const pollfd& entry) { return entry.revents != 0; });
  }
  return Outcome::kDone;
}

int Fleet::num_linked() const {
  const auto linked = [](const Membership& member) { return member.stage == Stage::kLinked; };
  return static_cast<int>(std::count_if(members().begin(), members().end(), linked));
}

Seconds Fleet::join_time() const {
  auto first = Clock::time_point::max();
  auto last = Clock::time_point::min();
  for (int i = 0; i < num_processes(); ++i) {
    first = std::min(first, shared_->processes[i].first_connect);
    last = std::max(last, shared_->processes[i].last_link);
  }
  return last - first;
}

Seconds Fleet::join_cpu_time() const {
  std::chrono::nanoseconds sum{0};
  for (int i = 0; i < num_processes(); ++i) sum += shared_->processes[i].join_cpu;
  return sum;
}

std::span<const Membership> Fleet::members() const {
  return {shared_->members(), static_cast<std::size_t>(num_workers_)};
}

std::string Fleet::error() const {
  for (int i = 0; i < num_processes(); ++i) {
    if (shared_->processes[i].error[0] != '\0') return shared_->processes[i].error;
  }
  return {};
}

}  // namespace warren::bench
