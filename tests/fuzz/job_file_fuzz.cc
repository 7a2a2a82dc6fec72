// Job files: the result is options that --save writes and --job reads back unchanged, or a UsageError.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "submit/cluster/clusters.h"
#include "submit/options/options.h"
#include "submit/options/parse.h"

namespace {

warren::submit::Options With(const std::string& file, const std::vector<std::string>& arguments) {
  return warren::submit::ParseOptions(warren::submit::AllOptions(), arguments,
                                      [&file](const std::string&) { return file; });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using warren::submit::UsageError;
  const std::string file(reinterpret_cast<const char*>(data), size);
  warren::submit::Options options;
  std::string saved;
  try {
    options = With(file, {"--job", "f"});
  } catch (const UsageError& error) {
    if (*error.what() == 0) std::abort();
    return 0;
  }
  try {
    saved = With(file, {"--job", "f", "--save", "-"}).saved_job;
  } catch (const UsageError&) {
    return 0;  // a value that is not UTF-8
  }
  if (!(With(saved, {"--job", "f"}) == options)) std::abort();
  return 0;
}
