// The part of a data set that one worker reads.
#pragma once

namespace warren::data {

/// Part `index` of `count`. Parts have about the same number of bytes, are disjoint, and together contain all
/// rows.
struct Share {
  int index = 0;
  int count = 1;
};

}  // namespace warren::data
