#include "rabit_engine/collective/plans.h"

#include <algorithm>
#include <bit>

namespace warren::collective {
namespace {

PlanStep DoubleInLeftNode(int index, const Siblings& nodes, Range all) {
  const int place = index - nodes.left.begin;
  const int served = Size(nodes.right);
  PlanStep step{nodes, {}, Part{nodes.right.begin + place % served, all}};
  if (place < served) step.given.push_back({nodes.right.begin + place, all});
  return step;
}

PlanStep DoubleInRightNode(int index, const Siblings& nodes, Range all) {
  const int counterpart = nodes.left.begin + (index - nodes.right.begin);
  PlanStep step{nodes, {}, Part{counterpart, all}};
  for (int target = counterpart; target < nodes.left.end; target += Size(nodes.right)) {
    step.given.push_back({target, all});
  }
  return step;
}

/// Returns the part of the vector that a member still reduces after this number of halvings. Bit k of its
/// index determines the half that it kept in halving k.
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

PlanStep MeetAnEqualNode(int index, int level, const Siblings& nodes, std::size_t count) {
  const int counterpart = index ^ (1 << level);
  return {nodes,
          {{counterpart, WindowOf(counterpart, level + 1, count)}},
          Part{counterpart, WindowOf(index, level + 1, count)}};
}

/// Returns the number of times the vector has been halved in a smaller right node: as often as in its largest
/// full subtree, whose members have received everything from the other members.
int HalvingsIn(Subtree smaller) {
  return std::bit_width(static_cast<unsigned>(Size(smaller))) - 1;
}

PlanStep TakeFromASmallerNode(int index, int level, const Siblings& nodes, std::size_t count) {
  const int holders = 1 << HalvingsIn(nodes.right);
  return {nodes, {}, Part{nodes.right.begin + index % holders, WindowOf(index, level, count)}};
}

PlanStep GiveToALargerNode(int index, int level, const Siblings& nodes, std::size_t count) {
  const int holders = 1 << HalvingsIn(nodes.right);
  PlanStep step{nodes, {}, {}};
  for (int target = nodes.left.begin + (index - nodes.right.begin); target < nodes.left.end;
       target += holders) {
    step.given.push_back({target, WindowOf(target, level, count)});
  }
  return step;
}

}  // namespace

std::vector<PlanStep> PlanDoubling(int index, int size, std::size_t count) {
  std::vector<PlanStep> steps;
  for (int level = 0; level < NumLevels(size); ++level) {
    const Siblings nodes = SiblingsAbove(index, level, size);
    if (Size(nodes.right) == 0) continue;
    steps.push_back(Contains(nodes.left, index) ? DoubleInLeftNode(index, nodes, {0, count})
                                                : DoubleInRightNode(index, nodes, {0, count}));
  }
  return steps;
}

std::vector<PlanStep> PlanHalving(int index, int size, std::size_t count) {
  std::vector<PlanStep> steps;
  for (int level = 0; level < NumLevels(size); ++level) {
    const Siblings nodes = SiblingsAbove(index, level, size);
    if (Size(nodes.right) == 0) continue;
    if (Size(nodes.right) == Size(nodes.left)) {
      steps.push_back(MeetAnEqualNode(index, level, nodes, count));
    } else if (Contains(nodes.left, index)) {
      steps.push_back(TakeFromASmallerNode(index, level, nodes, count));
    } else {
      steps.push_back(GiveToALargerNode(index, level, nodes, count));
      break;  // this member no longer holds anything
    }
  }
  return steps;
}

void AllgatherBack(PeerGroup& group, std::span<const PlanStep> steps, const VectorView& vector) {
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    std::vector<Send> sends;
    if (step->kept) sends.push_back(vector.SendOf(step->kept->peer, step->kept->range));
    std::vector<Receive> receives;
    for (const Part& part : step->given) receives.push_back(vector.ReceiveInto(part.peer, part.range));
    group.Exchange(sends, receives);
  }
}

std::vector<int> PeersOf(std::span<const PlanStep> steps) {
  std::vector<int> peers;
  const auto add = [&peers](int peer) {
    if (std::ranges::find(peers, peer) == peers.end()) peers.push_back(peer);
  };
  for (const PlanStep& step : steps) {
    for (const Part& part : step.given) add(part.peer);
    if (step.kept) add(step.kept->peer);
  }
  return peers;
}

}  // namespace warren::collective
