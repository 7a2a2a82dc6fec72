// The commands of rabit-data. Each returns the exit code and throws std::exception for errors.
#pragma once

#include <string>

#include "data/uri.h"

namespace warren::data {

struct Arguments {
  std::string uri;
  Share share;
  int threads = 0;
  int most_errors = 20;
  std::string output;
  std::string to = "libsvm";
  int parts = 1;
};

int Inspect(const Arguments& arguments);
/// Returns 1 if there are bad rows or an error concerns the data set as a whole.
int Validate(const Arguments& arguments);
int Convert(const Arguments& arguments);
int WriteShards(const Arguments& arguments);

}  // namespace warren::data
