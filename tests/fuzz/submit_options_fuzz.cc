// dmlc-submit's command line, one argument per line: the result is options or a UsageError.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "submit/cluster/clusters.h"
#include "submit/options/options.h"
#include "submit/options/parse.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> arguments(1);
  for (std::size_t i = 0; i < size; ++i) {
    if (data[i] == '\n') {
      arguments.emplace_back();
    } else if (data[i] != 0) {
      arguments.back() += static_cast<char>(data[i]);
    }
  }
  try {
    const warren::submit::Options options = warren::submit::ParseOptions(
        warren::submit::AllOptions(), arguments, [](const std::string& path) { return path; });
    if (options.request == warren::submit::Request::kRun && options.num_workers < 1) std::abort();
  } catch (const warren::submit::UsageError& error) {
    if (*error.what() == 0) std::abort();
  }
  return 0;
}
