// The order of reduction (reduce/order.h) as seen by one member of a group: the two nodes that meet at each
// level. Level k joins nodes of up to 2^k members.
#pragma once

#include <algorithm>
#include <bit>

#include "rabit_engine/reduce/order.h"

namespace warren::collective {

/// Two neighboring nodes with the same parent. If `right` is not empty, `left` has 2^k members, where k is
/// the level at which the two nodes meet.
struct Siblings {
  Subtree left;
  Subtree right;
};

inline int Size(Subtree node) {
  return node.end - node.begin;
}
inline bool Contains(Subtree node, int index) {
  return node.begin <= index && index < node.end;
}

/// The number of levels: ceil(log2(size)).
inline int NumLevels(int size) {
  return std::bit_width(static_cast<unsigned>(size - 1));
}

/// Returns the siblings that meet at `level`, one of which contains `index`. If `right` is empty, there is
/// nothing to combine at this level.
inline Siblings SiblingsAbove(int index, int level, int size) {
  const int begin = index >> (level + 1) << (level + 1);
  const int middle = std::min(begin + (1 << level), size);
  const int end = std::min(middle + (1 << level), size);
  return {{begin, middle}, {middle, end}};
}

}  // namespace warren::collective
