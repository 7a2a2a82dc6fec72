// Sets up the segment that the ranks on a host share (host_segment.h), on Linux. Other systems use
// without_shared_memory.cc.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <utility>

#include "posix/shortage.h"
#include "rabit_engine/base/say.h"
#include "rabit_engine/host/descriptor_passing.h"
#include "rabit_engine/host/host_segment.h"
#include "rabit_engine/host/sharing.h"

namespace warren {
namespace {

/// The first failure that keeps this rank from sharing memory, as one line for the user.
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

/// Returns a descriptor that becomes readable when this process ends. Without pidfd_open (kernels before 5.3,
/// some containers), it is the read end of a pipe whose write end deliberately stays open while the process
/// is running.
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

/// The length of the memfd, including the memory for reserved ranges, if the file size limit allows it. No
/// range is reserved twice, so the length must suffice for all communicators that a job ever makes.
constexpr std::size_t kMemoryBytes = std::size_t{1} << 50;

/// Creates the shared memory. Returns an empty descriptor if a system call fails or the file size limit
/// (ulimit -f) is too low: exceeding that limit would raise SIGXFSZ.
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

/// Called by the leader: receives the descriptors of the `expected` ranks, which have reported that they are
/// connected, and closes all other connections. Returns false on failure.
bool AcceptMembers(int listener, std::span<const int> expected,
                   std::map<int, std::vector<CloseOnForkDescriptor>>& received,
                   std::map<int, CloseOnForkDescriptor>& sockets, Trouble& trouble) {
  while (received.size() < expected.size()) {
    pollfd ready{listener, POLLIN, 0};
    const int polled = poll(&ready, 1, kPassingTimeoutMs);
    if (polled < 0 && errno == EINTR) continue;
    if (polled == 0) trouble.Note("another rank of this host did not hand over its descriptors in time");
    if (polled <= 0) return false;
    CloseOnForkDescriptor socket = AcceptLocally(listener);
    if (!socket && errno != EINTR && errno != ECONNABORTED && errno != EAGAIN)
      return trouble.Check("accept4", false);
    if (!socket) continue;
    std::optional<PassedDescriptors> passed = ReceiveDescriptors(socket.fd());
    if (!passed || passed->descriptors.size() != 2) {
      if (trouble.IsOutOfDescriptors()) return false;
      continue;
    }
    if (std::find(expected.begin(), expected.end(), passed->rank) == expected.end()) continue;
    received[passed->rank] = std::move(passed->descriptors);
    sockets[passed->rank] = std::move(socket);
  }
  return true;
}

/// One rank's part in setting up the memory of its host, in two steps. Between the steps, the ranks exchange
/// which of them completed the first. A step that fails returns false or nullptr; trouble() then has the
/// reason, if it is known.
class SegmentSetup {
 public:
  /// `group`: the ranks that may share memory with `rank`, itself included, the leader first.
  SegmentSetup(int rank, std::vector<int> group, bool is_crowded)
      : rank_(rank), group_(std::move(group)), cores_(HostCores::OfThisHost(is_crowded)) {}

  bool is_leader() const { return !group_.empty() && group_.front() == rank_; }
  const std::vector<int>& group() const { return group_; }
  Trouble& trouble() { return trouble_; }

  /// Step 1: the leader creates the memory; every other rank sends its descriptors to the leader's socket.
  bool Reach(const std::string& leader_socket) {
    if (group_.size() <= 1) return false;
    lifeline_ = MakeLifeline();
    if (!trouble_.Check("pidfd_open or pipe2", static_cast<bool>(lifeline_))) return false;
    doorbell_ = CloseOnForkDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!trouble_.Check("eventfd", static_cast<bool>(doorbell_))) return false;
    if (is_leader()) {
      memory_ = MakeMemory(HostSegment::MostBytes(group_.size(), cores_), rank_, trouble_);
      return static_cast<bool>(memory_);
    }
    leader_ = OpenLocalSocket();
    if (!trouble_.Check("socket", static_cast<bool>(leader_))) return false;
    const std::array<int, 2> own{lifeline_.fd(), doorbell_.fd()};
    return ConnectLocally(leader_.fd(), leader_socket) && SendDescriptors(leader_.fd(), rank_, own);
  }

  /// Removes the ranks that failed in step 1, or all ranks if the leader is one of them.
  void KeepThoseThatReached(std::span<const std::string> reached) {
    if (!group_.empty() && reached[group_.front()] != "1") group_.clear();
    std::erase_if(group_, [&reached](int rank) { return reached[rank] != "1"; });
  }

  /// Step 2: the leader sends all descriptors to all members. Then every member maps the memory. Returns
  /// nullptr on failure, or if this rank has no part in the segment.
  std::unique_ptr<HostSegment> Exchange(int listener) {
    if (group_.size() <= 1) return nullptr;
    if (is_leader() ? !Distribute(listener) : !ReceiveAll()) return nullptr;
    const int local = static_cast<int>(std::find(group_.begin(), group_.end(), rank_) - group_.begin());
    try {
      auto descriptor = std::make_shared<const CloseOnForkDescriptor>(std::move(memory_));
      const std::size_t bytes = HostSegment::Bytes(group_.size(), cores_);
      auto memory = HostSegment::Map(std::move(descriptor), 0, bytes);
      return std::make_unique<HostSegment>(std::move(memory), std::move(members_), local, cores_);
    } catch (const std::exception& error) {
      trouble_.Note(error.what());
      return nullptr;
    }
  }

 private:
  bool Distribute(int listener) {
    std::map<int, std::vector<CloseOnForkDescriptor>> received;
    std::map<int, CloseOnForkDescriptor> sockets;
    if (!AcceptMembers(listener, std::span(group_).subspan(1), received, sockets, trouble_)) return false;
    members_.push_back(MakeMember(rank_, std::move(lifeline_), std::move(doorbell_)));
    for (auto& [rank, descriptors] : received) {
      members_.push_back(MakeMember(rank, std::move(descriptors[0]), std::move(descriptors[1])));
    }
    std::vector<int> all{memory_.fd()};
    for (const HostSegment::Member& member : members_) {
      all.push_back(member.lifeline->fd());
      all.push_back(member.doorbell->fd());
    }
    bool ok = true;
    for (auto& [rank, socket] : sockets) ok = SendDescriptors(socket.fd(), rank_, all, cores_) && ok;
    return ok;
  }

  bool ReceiveAll() {
    std::optional<PassedDescriptors> passed = ReceiveDescriptors(leader_.fd());
    if (!passed || passed->descriptors.size() != 1 + 2 * group_.size()) {
      trouble_.IsOutOfDescriptors();
      return false;
    }
    cores_ = passed->cores;
    std::vector<CloseOnForkDescriptor>& all = passed->descriptors;
    memory_ = std::move(all[0]);
    for (std::size_t i = 0; i < group_.size(); ++i) {
      members_.push_back(MakeMember(group_[i], std::move(all[1 + 2 * i]), std::move(all[2 + 2 * i])));
    }
    return true;
  }

  int rank_;
  std::vector<int> group_;
  Trouble trouble_;
  HostCores cores_;  ///< the leader's values after step 2
  CloseOnForkDescriptor lifeline_, doorbell_, memory_;
  CloseOnForkDescriptor leader_;  ///< the connection to the leader
  std::vector<HostSegment::Member> members_;
};

}  // namespace

// --- making and joining ---

HostSegment::Offer::Offer(const std::string& group) : socket_name_(RandomName()) {
  const std::string key = HostKey();
  CloseOnForkDescriptor listener = OpenLocalSocket();
  Trouble trouble;
  const bool listens = trouble.Check("socket", static_cast<bool>(listener)) &&
                       trouble.Check("bind", BindLocally(listener.fd(), socket_name_)) &&
                       trouble.Check("listen", listen(listener.fd(), kMaxLocalRanks) == 0);
  trouble_ = trouble.text();
  if (key.empty() || !listens) return;  // no text: this rank shares memory with no other
  listener_ = std::move(listener);
  text_ = key + "/" + group + " " + socket_name_;
}

std::unique_ptr<HostSegment> HostSegment::Offer::Join(OobAllgather& oob, std::span<const std::string> offers,
                                                      bool is_crowded, std::vector<int>& hosts) {
  const int me = oob.rank();
  std::vector<int> group;
  if (!offers[me].empty()) group = GroupsOf(offers)[GroupOf(offers[me])];
  if (group.size() > static_cast<std::size_t>(kMaxLocalRanks)) group.clear();

  SegmentSetup setup(me, std::move(group), is_crowded);
  const std::string leader = setup.group().empty() ? "" : offers[setup.group().front()];
  const bool has_reached = setup.Reach(leader.substr(leader.rfind(' ') + 1));
  const std::vector<std::string> reached = oob.Allgather(has_reached ? "1" : "0");
  setup.KeepThoseThatReached(reached);
  std::unique_ptr<HostSegment> segment = has_reached ? setup.Exchange(listener_.fd()) : nullptr;

  Trouble& trouble = setup.trouble();
  if (offers[me].empty()) trouble.Note(trouble_);
  if (!segment && setup.is_leader() && setup.group().size() > 1)
    trouble.Note("another rank of this host could not set up its part");
  if (!trouble.text().empty()) {
    Say("rabit: rank {} shares no memory with the other ranks of its host, though it could, and uses TCP: {}",
        me, trouble.text());
  }

  // Every rank finds out which ranks share memory. If one rank failed in step 2, no rank on its host does.
  const std::vector<std::string> joined =
      oob.Allgather(fmt::format("{}", segment ? setup.group().front() : -1));
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
