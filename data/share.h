// The part of a data set that one worker reads.
#pragma once

namespace warren::data {

/// Part `index` of `count`, counted from 0. Parts are disjoint, together contain all rows, and have about the
/// same number of bytes, as far as the inputs can be divided.
struct Share {
  int index = 0;
  int count = 1;
};

}  // namespace warren::data
