#include "rabit_engine/host/host_segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>

#include "rabit_engine/base/error.h"
#include "rabit_engine/base/say.h"
#include "rabit_engine/host/cores.h"
#include "rabit_engine/host/futex.h"

namespace warren {

struct HostSegment::Header {
  std::atomic<std::uint64_t>
      aborted;  ///< 0, or the lost rank + 1, and the one that says so in the upper half
  std::atomic<std::uint64_t> reserved;   ///< bytes behind the segment that were given out
  std::atomic<std::uint64_t> have_left;  ///< members
};

namespace {

constexpr std::uint64_t kMagic = 0x5741'5252'454e'0006;  // "WARREN", layout 6
/// For one step of handing out descriptors between processes of one host that are all alive.
constexpr int kStepTimeoutMs = 10'000;

constexpr std::size_t RoundUp(std::size_t bytes, std::size_t unit = kCacheLine) {
  return (bytes + unit - 1) / unit * unit;
}

/// A ring takes a message of usual size whole; with many ranks there are many rings.
std::size_t RingBytes(std::size_t local_size) {
  return local_size <= 64 ? std::size_t{64} << 10 : std::size_t{16} << 10;
}

/// Entries begin half a page away from where large buffers of a program do. Where both have the same place in
/// their pages, each load of a copy takes the last store for the one that it needs, and waits for it: 256 KiB
/// with two ranks took 1.2 times as long between near cores and 2.6 times between far ones.
constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kEntryOffset = kPageBytes / 2;

struct Layout {
  explicit Layout(std::size_t local_size) {
    std::size_t at = kCacheLine;
    const auto place = [&at](std::size_t bytes) { return std::exchange(at, at + RoundUp(bytes)); };
    lines = place(local_size * sizeof(RankLines));
    slots = place(local_size * kSlots * sizeof(Slot));
    at = RoundUp(at, kPageBytes) + kEntryOffset;
    entries = place(local_size * kEntries * kEntryBytes);
    rings = place(local_size * local_size * (Ring::kHeaderBytes + RingBytes(local_size)));
    bytes = at;
  }
  std::size_t lines, slots, entries, rings, bytes;
};

// --- descriptors over a Unix socket ------------------------------------------------------------------------

struct Greeting {
  std::uint64_t magic = kMagic;
  std::int32_t rank = -1;
  std::int32_t num_descriptors = 0;
};

/// The kernel takes at most 253 descriptors at once.
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
      // A user may have only so many descriptors on their way (ulimit -n): wait until others have taken
      // theirs.
      if (errno != EINTR && errno != ETOOMANYREFS) return false;
      if (std::chrono::steady_clock::now() >= end) return false;
      if (errno == ETOOMANYREFS) std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    if (taken != static_cast<ssize_t>(sizeof(greeting))) return false;
    sent += now;
  } while (sent < descriptors.size());
  return true;
}

/// Messages are packets: each arrives whole with its descriptors.
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
    // A leading NUL: the name lives in the kernel only, within this network namespace.
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
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

/// Becomes readable when this process ends. On kernels before 5.3 the reading end of a pipe whose other end
/// stays open, on purpose, as long as the process lives.
CloseOnForkDescriptor MakeLifeline() {
#ifdef SYS_pidfd_open
  CloseOnForkDescriptor lifeline(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  if (lifeline) return lifeline;
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

/// How long the memory is, with what is given out of it: enough for more communicators than a job makes,
/// since no range is given out twice.
constexpr std::size_t kMemoryBytes = std::size_t{1} << 50;

/// None where the kernel has no room; beyond the limit of file sizes (ulimit -f) it would send SIGXFSZ.
CloseOnForkDescriptor MakeMemory(std::size_t bytes, int rank) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes) {
    Say("rabit: rank {}: the shared memory of this host takes {} bytes, and its limit of file sizes "
        "(ulimit -f) is {} bytes; the ranks here use TCP",
        rank, bytes, limit.rlim_cur);
    return {};
  }
  CloseOnForkDescriptor memory(memfd_create("warren", MFD_CLOEXEC));
  if (!memory) return {};
  const std::size_t most = std::clamp<std::size_t>(limit.rlim_cur, bytes, kMemoryBytes);
  for (const std::size_t length : {most, bytes}) {
    if (ftruncate(memory.fd(), static_cast<off_t>(length)) == 0) return memory;
  }
  return {};
}

HostSegment::Member MakeMember(int rank, CloseOnForkDescriptor lifeline, CloseOnForkDescriptor doorbell) {
  return {rank, std::make_shared<const CloseOnForkDescriptor>(std::move(lifeline)),
          std::make_shared<Doorbell>(std::move(doorbell))};
}

/// The leader's side: takes the descriptors of the members that said they are connected. Connections of
/// other connections are closed.
bool AcceptMembers(int listener, std::span<const int> expected,
                   std::map<int, std::vector<CloseOnForkDescriptor>>& received,
                   std::map<int, CloseOnForkDescriptor>& sockets) {
  while (received.size() < expected.size()) {
    pollfd ready{listener, POLLIN, 0};
    const int polled = poll(&ready, 1, kStepTimeoutMs);
    if (polled < 0 && errno == EINTR) continue;
    if (polled <= 0) return false;
    CloseOnForkDescriptor socket(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket && errno != EINTR && errno != ECONNABORTED && errno != EAGAIN) return false;
    if (!socket || !IsOwnUser(socket.fd())) continue;
    SetTimeouts(socket.fd());
    Greeting greeting;
    std::vector<CloseOnForkDescriptor> descriptors;
    if (!ReceiveDescriptors(socket.fd(), greeting, descriptors) || descriptors.size() != 2) continue;
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
  if (key.empty() || !listener || bind(listener.fd(), address.get(), address.bytes) != 0 ||
      listen(listener.fd(), kMaxLocalRanks) != 0) {
    return;  // no text: this rank shares with nobody
  }
  listener_ = std::move(listener);
  // The socket last: a group may have spaces.
  text_ = key + "/" + group + " " + socket_name_;
}

std::unique_ptr<HostSegment> HostSegment::Offer::Join(OobAllgather& oob, std::span<const std::string> offers,
                                                      std::vector<int>& hosts) {
  const int me = oob.rank();
  const auto key_of = [&offers](int rank) { return offers[rank].substr(0, offers[rank].rfind(' ')); };
  hosts.resize(offers.size());
  std::map<std::string, std::vector<int>> groups;
  for (int rank = 0; rank < static_cast<int>(offers.size()); ++rank) {
    if (!offers[rank].empty()) groups[key_of(rank)].push_back(rank);
    hosts[rank] = rank;
  }
  std::vector<int> group;
  if (!offers[me].empty()) group = groups[key_of(me)];
  if (group.size() > static_cast<std::size_t>(kMaxLocalRanks)) group.clear();
  const bool is_leader = !group.empty() && group.front() == me;

  // Step 1: the leader makes the memory, the others reach its socket and send their descriptors.
  bool ok = group.size() > 1;
  CloseOnForkDescriptor memory;
  CloseOnForkDescriptor to_leader;
  CloseOnForkDescriptor lifeline = MakeLifeline();
  CloseOnForkDescriptor doorbell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  ok = ok && lifeline && doorbell;
  if (ok && is_leader) {
    memory = MakeMemory(Bytes(group.size()), me);
    ok = static_cast<bool>(memory);
  } else if (ok) {
    to_leader = CloseOnForkDescriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
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

  // Step 2: the leader hands everything to everybody.
  std::vector<Member> members;
  if (ok && is_leader) {
    std::map<int, std::vector<CloseOnForkDescriptor>> received;
    std::map<int, CloseOnForkDescriptor> sockets;
    ok = AcceptMembers(listener_.fd(), std::span(group).subspan(1), received, sockets);
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
    } catch (const std::exception&) {
      segment = nullptr;  // told to all in the next step: nobody of this host shares
    }
  }

  if (!segment && is_leader && group.size() > 1) {
    std::fprintf(
        stderr,
        "rabit: rank %d and the %zu others of its host share no memory, though they could: something went "
        "wrong when it was handed out (is ulimit -n large enough?). They talk TCP.\n",
        me, group.size() - 1);
  }

  // Step 3: all know who shares. One that failed late takes its whole host back to TCP.
  const std::vector<std::string> joined = oob.Allgather(fmt::format("{}", segment ? group.front() : -1));
  std::map<int, std::vector<int>> sharing;
  for (int rank = 0; rank < static_cast<int>(joined.size()); ++rank) {
    sharing[std::stoi(joined[rank])].push_back(rank);
  }
  for (const auto& [leader, ranks] : sharing) {
    if (leader < 0) continue;
    std::vector<int> expected;
    for (const int rank : groups[key_of(leader)]) {
      if (reached[rank] == "1") expected.push_back(rank);
    }
    if (ranks != expected) {
      if (!group.empty() && leader == group.front()) segment = nullptr;
      continue;
    }
    for (const int rank : ranks) hosts[rank] = leader;
  }
  listener_ = {};
  return segment;
}

std::size_t HostSegment::Bytes(std::size_t local_size) {
  return Layout(local_size).bytes;
}

HostSegment::Memory HostSegment::Map(std::shared_ptr<const CloseOnForkDescriptor> descriptor,
                                     std::size_t offset, std::size_t bytes) {
  void* base =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor->fd(), static_cast<off_t>(offset));
  if (base == MAP_FAILED) {
    throw EngineError(fmt::format("cannot map {} bytes of shared memory: {}", bytes, std::strerror(errno)));
  }
  std::shared_ptr<std::byte> mapped(static_cast<std::byte*>(base),
                                    [bytes](std::byte* memory) { munmap(memory, bytes); });
  return {std::move(descriptor), offset, std::move(mapped)};
}

HostSegment::HostSegment(Memory memory, std::vector<Member> members, int local_index,
                         std::optional<bool> oversubscribed)
    : memory_(std::move(memory)),
      members_(std::move(members)),
      local_index_(local_index),
      ring_bytes_(RingBytes(members_.size())) {
  for (const Member& member : members_) ranks_.push_back(member.rank);
  const Layout layout(members_.size());
  std::byte* const base = memory_.mapped.get();
  header_ = reinterpret_cast<Header*>(base);
  lines_ = reinterpret_cast<RankLines*>(base + layout.lines);
  slots_ = reinterpret_cast<Slot*>(base + layout.slots);
  entries_ = base + layout.entries;
  rings_ = base + layout.rings;
  // A new memfd is zero, which is the state that everything in it begins with.
  oversubscribed_ = oversubscribed ? *oversubscribed : local_size() > UsableCores();
}

HostSegment::~HostSegment() {
  if (NumForks() != num_forks_) return;  // a fork of the process that has it leaves nothing
  lines_[local_index_].left.store(1);
  RingBell();
  const bool is_last = header_->have_left.fetch_add(1) + 1 == members_.size();
  if (!is_last || memory_.offset == 0) return;
  fallocate(memory_.descriptor->fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            static_cast<off_t>(memory_.offset),
            static_cast<off_t>(RoundUp(Bytes(members_.size()), kPageBytes)));
}

// --- segments of some of the members ---

std::optional<std::size_t> HostSegment::Reserve(std::size_t local_size) {
  struct stat memory {};
  if (fstat(memory_.descriptor->fd(), &memory) != 0) return std::nullopt;
  const std::size_t bytes = RoundUp(Bytes(local_size), kPageBytes);
  const std::size_t begin = RoundUp(memory_.offset + Bytes(members_.size()), kPageBytes);
  const auto end = static_cast<std::size_t>(memory.st_size);
  std::uint64_t reserved = header_->reserved.load();
  do {
    if (begin + reserved + bytes > end) return std::nullopt;
  } while (!header_->reserved.compare_exchange_weak(reserved, reserved + bytes));
  return begin + reserved;
}

std::unique_ptr<HostSegment> HostSegment::Within(std::size_t offset, std::span<const int> members) const {
  std::vector<Member> some;
  int index = -1;
  for (const int local : members) {
    if (local == local_index_) index = static_cast<int>(some.size());
    some.push_back(members_[local]);
  }
  auto segment = std::make_unique<HostSegment>(Map(memory_.descriptor, offset, Bytes(some.size())),
                                               std::move(some), index, oversubscribed_);
  segment->members_may_leave_ = true;
  return segment;
}

// --- who is there ---

PeerCore HostSegment::CoreOf(int local) {
  if (oversubscribed_) return PeerCore::kCrowded;
  const std::uint32_t core = SayCore();
  return lines_[local].core_plus_1.load(std::memory_order_relaxed) != core ? PeerCore::kOther
                                                                           : PeerCore::kThis;
}

std::uint32_t HostSegment::SayCore() {
  const auto core = static_cast<std::uint32_t>(sched_getcpu() + 1);
  if (core != core_plus_1_) {
    core_plus_1_ = core;
    lines_[local_index_].core_plus_1.store(core, std::memory_order_relaxed);
  }
  return core;
}

void HostSegment::Abort(int lost_rank) noexcept {
  std::uint64_t nobody = 0;
  const auto by = static_cast<std::uint64_t>(ranks_[local_index_]);
  header_->aborted.compare_exchange_strong(nobody, by << 32 | static_cast<std::uint32_t>(lost_rank + 1));
  for (int local = 0; local < local_size(); ++local) {
    WakeSleepers(local);
    if (lines_[local].needs_doorbell.load() != 0) members_[local].doorbell->Ring();
  }
}

std::optional<HostSegment::Aborted> HostSegment::aborted() const {
  const std::uint64_t word = header_->aborted.load(std::memory_order_relaxed);
  if (word == 0) return std::nullopt;
  return Aborted{static_cast<int>(static_cast<std::uint32_t>(word)) - 1, static_cast<int>(word >> 32)};
}

// --- which call a rank is in: a sequence lock for each record (Boehm, "Can seqlocks get along with
// programming language memory models?", 2012) ---

void HostSegment::SayCall(const CallTag& tag) {
  CallRecord& record = lines_[local_index_].calls[tag.sequence % kRememberedCalls];
  const auto words = std::bit_cast<std::array<std::uint64_t, CallRecord::kWords>>(tag);
  record.sequence.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  for (std::size_t i = 0; i < words.size(); ++i) record.words[i].store(words[i], std::memory_order_relaxed);
  record.sequence.store(tag.sequence, std::memory_order_release);
}

std::optional<CallTag> HostSegment::CallOf(int local, std::uint32_t sequence) const {
  const CallRecord& record = lines_[local].calls[sequence % kRememberedCalls];
  std::array<std::uint64_t, CallRecord::kWords> words{};
  if (sequence == 0 || record.sequence.load(std::memory_order_acquire) != sequence) return std::nullopt;
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = record.words[i].load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (record.sequence.load(std::memory_order_relaxed) != sequence) return std::nullopt;
  return std::bit_cast<CallTag>(words);
}

void HostSegment::ThrowIfCallsDiffer(int local, std::uint32_t sequence) const {
  for (std::uint32_t back = kRememberedCalls; back-- > 0;) {
    const auto own = CallOf(local_index_, sequence - back);
    const auto theirs = CallOf(local, sequence - back);
    if (own && theirs && !IsSameCall(*own, *theirs)) {
      ThrowDifferentCalls(ranks_[local_index_], *own, ranks_[local], *theirs);
    }
  }
}

void HostSegment::SayWait(const WaitRecord& wait) {
  WaitLines& lines = lines_[local_index_].wait;
  const auto words = std::bit_cast<std::array<std::uint64_t, WaitLines::kWords>>(wait);
  lines.renewed.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  for (std::size_t i = 0; i < words.size(); ++i) lines.words[i].store(words[i], std::memory_order_relaxed);
  lines.renewed.store(wait.renewed, std::memory_order_release);
}

std::optional<WaitRecord> HostSegment::WaitOf(int local) const {
  const WaitLines& lines = lines_[local].wait;
  std::array<std::uint64_t, WaitLines::kWords> words{};
  const std::int64_t renewed = lines.renewed.load(std::memory_order_acquire);
  if (renewed == 0) return std::nullopt;
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = lines.words[i].load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (lines.renewed.load(std::memory_order_relaxed) != renewed) return std::nullopt;
  return std::bit_cast<WaitRecord>(words);
}

std::vector<int> HostSegment::FindLost() {
  lifelines_.resize(members_.size());
  for (std::size_t i = 0; i < members_.size(); ++i) lifelines_[i] = {members_[i].lifeline->fd(), POLLIN, 0};
  poll(lifelines_.data(), lifelines_.size(), 0);
  std::vector<int> lost;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const bool left = lines_[i].left.load() != 0;
    if (members_may_leave_ ? lifelines_[i].revents != 0 && !left : lifelines_[i].revents != 0 || left) {
      lost.push_back(ranks_[i]);
    }
  }
  return lost;
}

void HostSegment::WakeSleepers(int local) noexcept {
  lines_[local].bell.fetch_add(1);
  FutexWakeAll(lines_[local].bell);
}

std::string HostKey() {
  std::array<char, 64> name{};
  const ssize_t bytes = readlink("/proc/self/ns/net", name.data(), name.size());
  const std::string boot = ReadLine("/proc/sys/kernel/random/boot_id");
  if (bytes <= 0 || boot.empty()) return {};
  return boot + "/" + std::string(name.data(), static_cast<std::size_t>(bytes));
}

std::string_view MachineOf(std::string_view host_key) {
  return host_key.substr(0, host_key.find('/'));
}

}  // namespace warren
