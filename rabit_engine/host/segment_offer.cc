// How the ranks of a host set up a shared segment on Linux (host_segment.h). Other systems use
// without_shared_memory.cc.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>

#include "posix/shortage.h"
#include "rabit_engine/base/say.h"
#include "rabit_engine/host/host_segment.h"
#include "rabit_engine/host/sharing.h"

namespace warren {
namespace {

constexpr std::uint64_t kMagic = 0x5741'5252'454e'0007;  // "WARREN", layout 7
/// The limit for one step of passing descriptors among processes of one host that are all alive.
constexpr int kStepTimeoutMs = 10'000;

// --- descriptors over a Unix socket ------------------------------------------------------------------------

struct Greeting {
  std::uint64_t magic = kMagic;
  std::int32_t rank = -1;
  std::int32_t num_descriptors = 0;
};

/// The kernel accepts at most 253 descriptors per message.
constexpr std::size_t kDescriptorsPerMessage = 128;

bool SendDescriptors(int socket, const Greeting& greeting, std::span<const int> descriptors) {
  std::size_t sent = 0;
  do {
    const std::size_t now = std::min(kDescriptorsPerMessage, descriptors.size() - sent);
    alignas(cmsghdr) std::array<char, CMSG_SPACE(kDescriptorsPerMessage * sizeof(int))> control{};
    iovec data{const_cast<Greeting*>(&greeting), sizeof(greeting)};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    if (now > 0) {
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(now * sizeof(int));
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(now * sizeof(int));
      std::memcpy(CMSG_DATA(header), descriptors.data() + sent, now * sizeof(int));
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kStepTimeoutMs);
    ssize_t taken = -1;
    while ((taken = sendmsg(socket, &message, MSG_NOSIGNAL)) < 0) {
      // The descriptors of a user that are in transit are limited (ulimit -n): wait until others have
      // received theirs.
      if (errno != EINTR && errno != ETOOMANYREFS) return false;
      if (std::chrono::steady_clock::now() >= end) return false;
      if (errno == ETOOMANYREFS) std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    if (taken != static_cast<ssize_t>(sizeof(greeting))) return false;
    sent += now;
  } while (sent < descriptors.size());
  return true;
}

/// The first failed call, which keeps this rank from sharing memory, as one line for the user.
class Trouble {
 public:
  /// Returns `succeeded`. Notes errno if it is false.
  bool Check(const char* call, bool succeeded) {
    const int error = errno;
    if (!succeeded && text_.empty())
      text_ = fmt::format("{}: {}. {}", call, std::strerror(error), posix::ShortageAdvice(error));
    return succeeded;
  }
  /// Returns whether this process currently cannot open another descriptor, and notes it if so.
  bool IsOutOfDescriptors() {
    const int shortage = posix::DescriptorShortage();
    if (shortage == 0) return false;
    Note(fmt::format("there is no room for the descriptors of other ranks: {}. {}", std::strerror(shortage),
                     posix::ShortageAdvice(shortage)));
    return true;
  }
  void Note(const std::string& text) {
    if (text_.empty()) text_ = text;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Messages are packets: each arrives whole, with its descriptors.
bool ReceiveDescriptors(int socket, Greeting& greeting, std::vector<CloseOnForkDescriptor>& descriptors) {
  do {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(kDescriptorsPerMessage * sizeof(int))> control{};
    iovec data{&greeting, sizeof(greeting)};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    ssize_t got = -1;
    do {
      got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); got >= 0 && header;
         header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_type != SCM_RIGHTS) continue;
      const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
        descriptors.emplace_back(fd);
      }
    }
    if (got != static_cast<ssize_t>(sizeof(greeting)) || greeting.magic != kMagic) return false;
    if (greeting.num_descriptors < 0 || (message.msg_flags & MSG_CTRUNC) != 0) return false;
  } while (descriptors.size() < static_cast<std::size_t>(greeting.num_descriptors));
  return descriptors.size() == static_cast<std::size_t>(greeting.num_descriptors);
}

void SetTimeouts(int socket) {
  const timeval limit{kStepTimeoutMs / 1000, 0};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

struct AbstractAddress {
  explicit AbstractAddress(const std::string& name) {
    address.sun_family = AF_UNIX;
    // A leading NUL: the name exists only in the kernel, within this network namespace. Another rank may have
    // sent a name that is too long; it is cut, and no process listens there.
    const std::size_t length = std::min(name.size(), sizeof(address.sun_path) - 1);
    std::memcpy(address.sun_path + 1, name.data(), length);
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
  sockaddr_un address{};
  socklen_t bytes = 0;
};

bool IsOwnUser(int socket) {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == geteuid();
}

/// Becomes readable when this process ends. On kernels before 5.3 it is the reading end of a pipe whose other
/// end deliberately stays open while the process lives.
CloseOnForkDescriptor MakeLifeline() {
#ifdef SYS_pidfd_open
  CloseOnForkDescriptor lifeline(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  const bool is_short = posix::IsLocalShortage(errno) && !posix::ConcernsAddress(errno);
  if (lifeline || is_short) return lifeline;
#endif
  static const auto& pipe = *[] {
    auto* ends = new std::pair<CloseOnForkDescriptor, CloseOnForkDescriptor>;
    std::array<int, 2> made{-1, -1};
    if (pipe2(made.data(), O_CLOEXEC) == 0)
      *ends = {CloseOnForkDescriptor(made[0]), CloseOnForkDescriptor(made[1])};
    return ends;
  }();
  return CloseOnForkDescriptor(fcntl(pipe.first.fd(), F_DUPFD_CLOEXEC, 0));
}

std::string ReadLine(const char* path) {
  std::string line;
  std::getline(std::ifstream(path), line);
  return line;
}

std::string RandomName() {
  std::random_device random;
  const auto draw = [&random] { return (std::uint64_t{random()} << 32) | random(); };
  return fmt::format("warren-{:016x}{:016x}", draw(), draw());
}

/// Length of the memfd, including reserved ranges. No range is reserved twice, so it must suffice for all
/// communicators that a job ever makes.
constexpr std::size_t kMemoryBytes = std::size_t{1} << 50;

/// Returns no descriptor if the kernel has no room or the limit of file sizes (ulimit -f) is too low; beyond
/// that limit the kernel would send SIGXFSZ.
CloseOnForkDescriptor MakeMemory(std::size_t bytes, int rank, Trouble& trouble) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes) {
    Say("rabit: rank {}: the shared memory of this host takes {} bytes, and its limit of file sizes (ulimit -f) is {} bytes; the ranks here use TCP",
        rank, bytes, limit.rlim_cur);
    return {};
  }
  CloseOnForkDescriptor memory(memfd_create("warren", MFD_CLOEXEC));
  if (!trouble.Check("memfd_create", static_cast<bool>(memory))) return {};
  const std::size_t most = std::clamp<std::size_t>(limit.rlim_cur, bytes, kMemoryBytes);
  for (const std::size_t length : {most, bytes}) {
    if (ftruncate(memory.fd(), static_cast<off_t>(length)) == 0) return memory;
  }
  trouble.Check("ftruncate", false);
  return {};
}

HostSegment::Member MakeMember(int rank, CloseOnForkDescriptor lifeline, CloseOnForkDescriptor doorbell) {
  return {rank, std::make_shared<const CloseOnForkDescriptor>(std::move(lifeline)),
          std::make_shared<Doorbell>(std::move(doorbell))};
}

/// The leader's side: receives the descriptors of the members that reported that they are connected. Closes
/// all other connections.
bool AcceptMembers(int listener, std::span<const int> expected,
                   std::map<int, std::vector<CloseOnForkDescriptor>>& received,
                   std::map<int, CloseOnForkDescriptor>& sockets, Trouble& trouble) {
  while (received.size() < expected.size()) {
    pollfd ready{listener, POLLIN, 0};
    const int polled = poll(&ready, 1, kStepTimeoutMs);
    if (polled < 0 && errno == EINTR) continue;
    if (polled == 0) trouble.Note("another rank of this host did not hand over its descriptors in time");
    if (polled <= 0) return false;
    CloseOnForkDescriptor socket(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket && errno != EINTR && errno != ECONNABORTED && errno != EAGAIN)
      return trouble.Check("accept4", false);
    if (!socket || !IsOwnUser(socket.fd())) continue;
    SetTimeouts(socket.fd());
    Greeting greeting;
    std::vector<CloseOnForkDescriptor> descriptors;
    if (!ReceiveDescriptors(socket.fd(), greeting, descriptors) || descriptors.size() != 2) {
      if (trouble.IsOutOfDescriptors()) return false;
      continue;
    }
    if (std::find(expected.begin(), expected.end(), greeting.rank) == expected.end()) continue;
    received[greeting.rank] = std::move(descriptors);
    sockets[greeting.rank] = std::move(socket);
  }
  return true;
}

}  // namespace

// --- making and joining ---

HostSegment::Offer::Offer(const std::string& group) : socket_name_(RandomName()) {
  const std::string key = HostKey();
  CloseOnForkDescriptor listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const AbstractAddress address(socket_name_);
  Trouble trouble;
  const bool listens = trouble.Check("socket", static_cast<bool>(listener)) &&
                       trouble.Check("bind", bind(listener.fd(), address.get(), address.bytes) == 0) &&
                       trouble.Check("listen", listen(listener.fd(), kMaxLocalRanks) == 0);
  trouble_ = trouble.text();
  if (key.empty() || !listens) return;  // no text: this rank shares with no other
  listener_ = std::move(listener);
  text_ = key + "/" + group + " " + socket_name_;
}

std::unique_ptr<HostSegment> HostSegment::Offer::Join(OobAllgather& oob, std::span<const std::string> offers,
                                                      std::vector<int>& hosts) {
  const int me = oob.rank();
  std::vector<int> group;
  if (!offers[me].empty()) group = GroupsOf(offers)[GroupOf(offers[me])];
  if (group.size() > static_cast<std::size_t>(kMaxLocalRanks)) group.clear();
  const bool is_leader = !group.empty() && group.front() == me;

  // Step 1: the leader creates the memory; the others connect to its socket and send their descriptors.
  bool ok = group.size() > 1;
  Trouble trouble;
  CloseOnForkDescriptor memory;
  CloseOnForkDescriptor to_leader;
  CloseOnForkDescriptor lifeline;
  CloseOnForkDescriptor doorbell;
  if (ok) {
    lifeline = MakeLifeline();
    ok = trouble.Check("pidfd_open or pipe2", static_cast<bool>(lifeline));
  }
  if (ok) {
    doorbell = CloseOnForkDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    ok = trouble.Check("eventfd", static_cast<bool>(doorbell));
  }
  if (ok && is_leader) {
    memory = MakeMemory(Bytes(group.size()), me, trouble);
    ok = static_cast<bool>(memory);
  } else if (ok) {
    to_leader = CloseOnForkDescriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    trouble.Check("socket", static_cast<bool>(to_leader));
    const std::string& offer = offers[group.front()];
    const AbstractAddress address(offer.substr(offer.rfind(' ') + 1));
    const std::array<int, 2> own{lifeline.fd(), doorbell.fd()};
    if (to_leader) SetTimeouts(to_leader.fd());
    ok = to_leader && connect(to_leader.fd(), address.get(), address.bytes) == 0 &&
         IsOwnUser(to_leader.fd()) &&
         SendDescriptors(to_leader.fd(), {.rank = me, .num_descriptors = 2}, own);
  }
  const std::vector<std::string> reached = oob.Allgather(ok ? "1" : "0");
  if (!group.empty() && reached[group.front()] != "1") group.clear();
  std::erase_if(group, [&reached](int rank) { return reached[rank] != "1"; });
  ok = ok && group.size() > 1;

  // Step 2: the leader sends all descriptors to all members.
  std::vector<Member> members;
  if (ok && is_leader) {
    std::map<int, std::vector<CloseOnForkDescriptor>> received;
    std::map<int, CloseOnForkDescriptor> sockets;
    ok = AcceptMembers(listener_.fd(), std::span(group).subspan(1), received, sockets, trouble);
    if (ok) {
      members.push_back(MakeMember(me, std::move(lifeline), std::move(doorbell)));
      for (auto& [rank, descriptors] : received) {
        members.push_back(MakeMember(rank, std::move(descriptors[0]), std::move(descriptors[1])));
      }
      std::vector<int> all{memory.fd()};
      for (const Member& member : members) {
        all.push_back(member.lifeline->fd());
        all.push_back(member.doorbell->fd());
      }
      const Greeting greeting{.rank = me, .num_descriptors = static_cast<std::int32_t>(all.size())};
      for (auto& [rank, socket] : sockets) ok = SendDescriptors(socket.fd(), greeting, all) && ok;
    }
  } else if (ok) {
    Greeting greeting;
    std::vector<CloseOnForkDescriptor> all;
    ok = ReceiveDescriptors(to_leader.fd(), greeting, all) && all.size() == 1 + 2 * group.size();
    if (!ok) trouble.IsOutOfDescriptors();
    if (ok) {
      memory = std::move(all[0]);
      for (std::size_t i = 0; i < group.size(); ++i) {
        members.push_back(MakeMember(group[i], std::move(all[1 + 2 * i]), std::move(all[2 + 2 * i])));
      }
    }
  }
  std::unique_ptr<HostSegment> segment;
  if (ok) {
    const int local = static_cast<int>(std::find(group.begin(), group.end(), me) - group.begin());
    try {
      auto descriptor = std::make_shared<const CloseOnForkDescriptor>(std::move(memory));
      segment = std::make_unique<HostSegment>(Map(std::move(descriptor), 0, Bytes(group.size())),
                                              std::move(members), local);
    } catch (const std::exception& error) {
      segment = nullptr;  // the next step tells all ranks; then no rank of this host shares memory
      trouble.Note(error.what());
    }
  }

  if (offers[me].empty()) trouble.Note(trouble_);
  if (!segment && is_leader && group.size() > 1)
    trouble.Note("another rank of this host could not set up its part");
  if (!trouble.text().empty()) {
    Say("rabit: rank {} shares no memory with the other ranks of its host, though it could, and uses TCP: {}",
        me, trouble.text());
  }

  // Step 3: all ranks learn which ranks share memory.
  const std::vector<std::string> joined = oob.Allgather(fmt::format("{}", segment ? group.front() : -1));
  hosts = LeadersOf(offers, reached, joined);
  if (hosts[me] < 0) segment = nullptr;
  for (int rank = 0; rank < static_cast<int>(hosts.size()); ++rank) {
    if (hosts[rank] < 0) hosts[rank] = rank;
  }
  listener_ = {};
  return segment;
}

std::string HostKey() {
  std::array<char, 64> name{};
  const ssize_t bytes = readlink("/proc/self/ns/net", name.data(), name.size());
  const std::string boot = ReadLine("/proc/sys/kernel/random/boot_id");
  if (bytes <= 0 || boot.empty()) return {};
  return boot + "/" + std::string(name.data(), static_cast<std::size_t>(bytes));
}

}  // namespace warren
