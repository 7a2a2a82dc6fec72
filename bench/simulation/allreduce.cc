#include "bench/simulation/allreduce.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <system_error>

#include "bench/simulation/double_tree.h"
#include "bench/simulation/world.h"
#include "rabit_engine/base/layout.h"
#include "rabit_engine/collective/choice.h"
#include "rabit_engine/collective/peer_group.h"
#include "rabit_engine/collective/registry.h"

namespace warren::simulation {
namespace {

using Call =
    std::function<void(PeerGroup& group, void* buffer, std::size_t count, const Reduction& reduction)>;

constexpr const char* kDoubleTree = "double_tree";
/// The chunk sizes to try. NCCL's trees use 32 to 512 KiB by default.
constexpr std::size_t kDoubleTreeChunks[] = {std::size_t{16} << 10, std::size_t{64} << 10,
                                             std::size_t{256} << 10};

/// The maximum number of chunks in each tree: more chunks would cost more than they save. Does not apply to
/// the largest chunk size.
constexpr std::size_t kMostChunks = 512;

/// Address space for a vector whose contents are never accessed.
class Vector {
 public:
  explicit Vector(std::size_t bytes) : bytes_(std::max<std::size_t>(bytes, 1)) {
    memory_ =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory_ == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap of a vector");
  }
  ~Vector() { munmap(memory_, bytes_); }
  Vector(const Vector&) = delete;
  Vector& operator=(const Vector&) = delete;
  void* data() const { return memory_; }

 private:
  std::size_t bytes_;
  void* memory_;
};

HostLayout LayoutOf(const Setting& setting) {
  std::vector<int> leaders(static_cast<std::size_t>(setting.ranks));
  for (int rank = 0; rank < setting.ranks; ++rank) leaders[rank] = rank - rank % setting.ranks_of_host;
  return HostLayout(leaders);
}

collective::Situation SituationOf(const Setting& setting, const HostLayout& layout) {
  collective::Situation situation;
  situation.collective = Collective::kAllreduce;
  situation.bytes = setting.bytes;
  situation.ranks = setting.ranks;
  situation.levels = layout.has_levels();
  situation.levels_may_reduce = layout.keeps_order();
  situation.consecutive = layout.hosts_are_consecutive();
  situation.hosts = layout.num_hosts();
  situation.order_matters = setting.order_matters;
  situation.crowded = setting.ranks_of_host > 2 * setting.model.cores_of_host;
  return situation;
}

/// The time of the stages inside hosts, before and after the stage between hosts. The ranks wait for each
/// other in the stage between hosts, so the host with the most ranks counts.
Time StagesInsideHosts(const Setting& setting) {
  const int others = std::min(setting.ranks, setting.ranks_of_host) - 1;
  const double bytes = static_cast<double>(setting.bytes);
  return 2 * others * setting.host_stages.latency +
         std::llround(bytes *
                      (setting.host_stages.reduce_ps_per_byte + setting.host_stages.spread_ps_per_byte));
}

Outcome Simulate(const Call& call, const Setting& setting, const HostLayout& layout) {
  const Reduction sum = SimulatedSum(setting.order_matters);
  const std::size_t count = setting.bytes / sum.element_bytes();
  const Vector vector(setting.bytes);
  std::vector<int> members(static_cast<std::size_t>(setting.ranks));
  std::iota(members.begin(), members.end(), 0);
  CallTag tag;
  tag.collective = Collective::kAllreduce;
  tag.count = count;
  tag.element_bytes = static_cast<std::uint32_t>(sum.element_bytes());
  const Hosts hosts{nullptr, &layout};

  World world(setting.model, setting.ranks, setting.ranks_of_host);
  world.set_most_events(setting.most_events);
  world.Run([&](Transport& transport) {
    PeerGroup group(transport, members, transport.rank(), hosts);
    for (int i = 0; i < setting.operations; ++i) {
      group.Begin(tag, kNoDeadline);
      call(group, vector.data(), count, sum);
    }
  });
  Outcome outcome;
  outcome.seconds = static_cast<double>(world.ended()) * 1e-12 / setting.operations;
  for (int rank = 0; rank < setting.ranks; ++rank) {
    const Traffic& traffic = world.traffic(rank);
    outcome.most_messages = std::max(outcome.most_messages, traffic.messages / setting.operations);
    outcome.all_messages += traffic.messages / setting.operations;
    outcome.most_bytes = std::max(outcome.most_bytes, traffic.bytes / setting.operations);
    outcome.all_bytes += traffic.bytes / setting.operations;
  }
  outcome.events = world.events();
  return outcome;
}

Outcome SimulateDoubleTree(const Setting& setting, const HostLayout& layout) {
  std::optional<Outcome> best;
  for (const std::size_t chunk_bytes : kDoubleTreeChunks) {
    const bool is_largest = chunk_bytes == *std::rbegin(kDoubleTreeChunks);
    if (setting.bytes / 2 > kMostChunks * chunk_bytes && !is_largest) continue;
    const Outcome outcome = Simulate(
        [chunk_bytes](PeerGroup& group, void* buffer, std::size_t count, const Reduction& reduction) {
          AllreduceDoubleTree(group, buffer, count, reduction, chunk_bytes);
        },
        setting, layout);
    if (!best || outcome.seconds < best->seconds) best = outcome;
    if (setting.bytes / 2 <= chunk_bytes) break;
  }
  return *best;
}

bool WorksInLevels(const collective::Algorithm& algorithm) {
  return (algorithm.needs & collective::kLevels) != 0;
}

}  // namespace

Outcome SimulateAllreduce(const std::string& algorithm, const Setting& setting) {
  const HostLayout layout = LayoutOf(setting);
  if (algorithm == kDoubleTree) return SimulateDoubleTree(setting, layout);
  const collective::Algorithm* found = collective::FindAlgorithm(algorithm);
  if (found == nullptr || found->allreduce == nullptr) {
    throw std::invalid_argument("there is no allreduce by " + algorithm);
  }
  Outcome outcome = Simulate(found->allreduce, setting, layout);
  if (WorksInLevels(*found)) outcome.seconds += static_cast<double>(StagesInsideHosts(setting)) * 1e-12;
  return outcome;
}

std::string ChosenAllreduce(const Setting& setting) {
  return std::string(collective::Choose(SituationOf(setting, LayoutOf(setting)), {}).name);
}

std::vector<std::string> AllreduceAlgorithms(const Setting& setting) {
  std::vector<std::string> names;
  const HostLayout layout = LayoutOf(setting);
  for (const collective::Algorithm* algorithm : collective::Algorithms()) {
    const bool over_links = algorithm->needs == collective::kNothing;
    const bool in_levels = WorksInLevels(*algorithm) && layout.has_levels();
    if (algorithm->allreduce != nullptr && (over_links || in_levels)) names.emplace_back(algorithm->name);
  }
  names.emplace_back(kDoubleTree);
  return names;
}

}  // namespace warren::simulation
