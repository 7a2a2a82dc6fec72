#include "rabit_engine/collective/halving_doubling.h"

#include <bit>
#include <optional>
#include <vector>

#include "rabit_engine/collective/levels.h"
#include "rabit_engine/collective/vector_view.h"

namespace warren::collective {
namespace {

/// A range of the vector that a peer has to do with.
struct Part {
  int peer = -1;
  Range range;
};

/// One level. In the reduce-scatter a member sends what it gives and combines what it keeps with the peer's
/// values; in the allgather it gets the former back and sends the latter.
struct Step {
  std::vector<Part> given;
  std::optional<Part> kept;
};

/// What a member of a node of 2^halvings members holds of the vector. Bit k of the index tells which half was
/// kept in halving k.
Range WindowOf(int index, int halvings, std::size_t count) {
  Range window{0, count};
  for (int k = 0; k < halvings; ++k) {
    const std::size_t middle = window.begin + window.size() / 2;
    if ((index >> k & 1) == 0) {
      window.end = middle;
    } else {
      window.begin = middle;
    }
  }
  return window;
}

Step MeetAnEqualNode(int index, int level, std::size_t count) {
  const int counterpart = index ^ (1 << level);
  return {{{counterpart, WindowOf(counterpart, level + 1, count)}},
          Part{counterpart, WindowOf(index, level + 1, count)}};
}

/// How often the vector has been halved in a smaller right node: as in its largest full subtree, to whose
/// members the others have given all they held.
int HalvingsIn(Subtree smaller) {
  return std::bit_width(static_cast<unsigned>(Size(smaller))) - 1;
}

Step TakeFromASmallerNode(int index, int level, Subtree right, std::size_t count) {
  const int holders = 1 << HalvingsIn(right);
  return {{}, Part{right.begin + index % holders, WindowOf(index, level, count)}};
}

Step GiveToALargerNode(int index, int level, const Siblings& nodes, std::size_t count) {
  const int holders = 1 << HalvingsIn(nodes.right);
  Step step;
  for (int target = nodes.left.begin + (index - nodes.right.begin); target < nodes.left.end;
       target += holders) {
    step.given.push_back({target, WindowOf(target, level, count)});
  }
  return step;
}

/// The steps of the reduce-scatter.
std::vector<Step> PlanSteps(int index, int size, std::size_t count) {
  std::vector<Step> steps;
  for (int level = 0; level < NumLevels(size); ++level) {
    const Siblings nodes = SiblingsAbove(index, level, size);
    if (Size(nodes.right) == 0) continue;
    if (Size(nodes.right) == Size(nodes.left)) {
      steps.push_back(MeetAnEqualNode(index, level, count));
    } else if (Contains(nodes.left, index)) {
      steps.push_back(TakeFromASmallerNode(index, level, nodes.right, count));
    } else {
      steps.push_back(GiveToALargerNode(index, level, nodes, count));
      break;  // nothing is left to take part with
    }
  }
  return steps;
}

void ConnectPeersOf(PeerGroup& group, const std::vector<Step>& steps) {
  std::vector<int> peers;
  for (const Step& step : steps) {
    for (const Part& part : step.given) peers.push_back(part.peer);
    if (step.kept && step.given.empty()) peers.push_back(step.kept->peer);
  }
  group.Connect(peers);
}

void ReduceScatter(PeerGroup& group, const Step& step, const VectorView& vector, const Reduction& reduction) {
  std::vector<Send> sends;
  for (const Part& part : step.given) sends.push_back(vector.SendOf(part.peer, part.range));
  std::vector<Receive> receives;
  if (step.kept) {
    const bool peer_is_left = step.kept->peer < group.index();
    receives.push_back(vector.CombineFrom(step.kept->peer, step.kept->range, reduction, peer_is_left));
  }
  group.Exchange(sends, receives);
}

void Allgather(PeerGroup& group, const Step& step, const VectorView& vector) {
  std::vector<Send> sends;
  if (step.kept) sends.push_back(vector.SendOf(step.kept->peer, step.kept->range));
  std::vector<Receive> receives;
  for (const Part& part : step.given) receives.push_back(vector.ReceiveInto(part.peer, part.range));
  group.Exchange(sends, receives);
}

}  // namespace

void AllreduceHalvingDoubling(PeerGroup& group, void* buffer, std::size_t count, const Reduction& reduction) {
  const std::vector<Step> steps = PlanSteps(group.index(), group.size(), count);
  ConnectPeersOf(group, steps);
  const VectorView vector(buffer, reduction.element_bytes());
  for (auto step = steps.begin(); step != steps.end(); ++step) ReduceScatter(group, *step, vector, reduction);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) Allgather(group, *step, vector);
}

}  // namespace warren::collective
