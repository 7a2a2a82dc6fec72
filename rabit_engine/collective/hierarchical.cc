#include "rabit_engine/collective/hierarchical.h"

#include "rabit_engine/collective/recursive_doubling.h"
#include "rabit_engine/collective/slices.h"
#include "rabit_engine/collective/tree.h"

namespace warren::collective {
Levels::Levels(HostCollectives* host, Transport& transport, const HostLayout& layout, const CallTag& tag,
               Clock::time_point deadline)
    : host_(host),
      transport_(transport),
      layout_(layout),
      tag_(tag),
      deadline_(deadline),
      rank_(transport.rank()),
      my_host_(layout.host_of(rank_)) {}

std::vector<int> Levels::Representatives(int root) const {
  std::vector<int> ranks;
  ranks.reserve(static_cast<std::size_t>(layout_.num_hosts()));
  for (int host = 0; host < layout_.num_hosts(); ++host) {
    ranks.push_back(host == layout_.host_of(root) ? root : layout_.leader_of(host));
  }
  return ranks;
}

void Levels::Allreduce(void* buffer, std::size_t count, const Reduction& reduction, AllreduceFunction between,
                       bool slice_by_slice) {
  if (!slice_by_slice) {
    if (host_ != nullptr) host_->Reduce(tag_, buffer, count, reduction, 0);
    const std::vector<int> leaders = Representatives(layout_.leader_of(0));
    if (rank_ == leaders[my_host_]) {
      PeerGroup group(transport_, leaders, my_host_, tag_, deadline_);
      between(group, buffer, count, reduction);
    }
    if (host_ != nullptr) host_->Broadcast(tag_, buffer, count * reduction.element_bytes(), 0);
    return;
  }
  const int local = layout_.local_index(rank_);
  const int local_size = static_cast<int>(layout_.ranks_of(my_host_).size());
  std::vector<int> counterparts;
  counterparts.reserve(static_cast<std::size_t>(layout_.num_hosts()));
  for (int host = 0; host < layout_.num_hosts(); ++host)
    counterparts.push_back(layout_.ranks_of(host)[local]);
  const std::vector<std::size_t> offsets = EvenOffsets(count, local_size);
  const Range own = Slice(offsets, local);
  if (host_ != nullptr) host_->ReduceScatter(tag_, buffer, offsets, reduction);
  PeerGroup group(transport_, counterparts, my_host_, tag_, deadline_);
  between(group, static_cast<std::byte*>(buffer) + own.begin * reduction.element_bytes(), own.size(),
          reduction);
  if (host_ != nullptr) host_->Allgather(tag_, buffer, InBytes(offsets, reduction.element_bytes()));
}

void Levels::Reduce(void* buffer, std::size_t count, const Reduction& reduction, int root) {
  const std::vector<int> ranks = Representatives(root);
  if (host_ != nullptr) host_->Reduce(tag_, buffer, count, reduction, layout_.local_index(ranks[my_host_]));
  if (rank_ != ranks[my_host_]) return;
  PeerGroup group(transport_, ranks, my_host_, tag_, deadline_);
  ReduceTree(group, buffer, count, reduction, layout_.host_of(root));
}

void Levels::Broadcast(void* buffer, std::size_t bytes, int root, BroadcastFunction between) {
  const std::vector<int> ranks = Representatives(root);
  if (rank_ == ranks[my_host_]) {
    PeerGroup group(transport_, ranks, my_host_, tag_, deadline_);
    between(group, buffer, bytes, layout_.host_of(root));
  }
  if (host_ != nullptr) host_->Broadcast(tag_, buffer, bytes, layout_.local_index(ranks[my_host_]));
}

void Levels::Barrier() {
  if (host_ != nullptr) host_->Barrier(tag_);
  const std::vector<int> leaders = Representatives(layout_.leader_of(0));
  if (rank_ == leaders[my_host_]) {
    PeerGroup group(transport_, leaders, my_host_, tag_, deadline_);
    BarrierDissemination(group);
  }
  if (host_ != nullptr) host_->Barrier(tag_);
}

}  // namespace warren::collective
