#include "rabit_engine/collective/halving_doubling.h"

#include <vector>

#include "rabit_engine/collective/plans.h"

namespace warren::collective {
namespace {

void ReduceScatter(PeerGroup& group, const PlanStep& step, const VectorView& vector,
                   const Reduction& reduction) {
  std::vector<Send> sends;
  for (const Part& part : step.given) sends.push_back(vector.SendOf(part.peer, part.range));
  std::vector<Receive> receives;
  if (step.kept) {
    const bool peer_is_left = step.kept->peer < group.index();
    receives.push_back(vector.CombineFrom(step.kept->peer, step.kept->range, reduction, peer_is_left));
  }
  group.Exchange(sends, receives);
}

}  // namespace

void AllreduceHalvingDoubling(PeerGroup& group, void* buffer, std::size_t count, const Reduction& reduction) {
  const std::vector<PlanStep> steps = PlanHalving(group.index(), group.size(), count);
  group.Connect(PeersOf(steps));
  const VectorView vector(buffer, reduction.element_bytes());
  for (const PlanStep& step : steps) ReduceScatter(group, step, vector, reduction);
  AllgatherBack(group, steps, vector);
}

}  // namespace warren::collective
