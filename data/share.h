// Which part of a data set one worker reads.
#pragma once

namespace warren::data {

/// Part `index` of `count`: parts have about equal bytes, no row in common, and all rows together.
struct Share {
  int index = 0;
  int count = 1;
};

}  // namespace warren::data
