// LibSVM text: however it is shared out, the shares together find the same rows and the same digest, and a
// bad line is an error with a place.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "examples/xgboost/xgb_train/libsvm_check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace warren::xgb_train;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const LibsvmSummary whole = CheckLibsvm(text, "fuzz.txt");
    LibsvmSummary sum;
    for (int index = 0; index < 3; ++index) {
      const LibsvmSummary share = CheckLibsvm(text, "fuzz.txt", {index, 3});
      sum.rows += share.rows;
      sum.digest += share.digest;
    }
    if (sum.rows != whole.rows || sum.digest != whole.digest) std::abort();
  } catch (const DataError& error) {
    if (!std::string_view(error.what()).starts_with("fuzz.txt:")) std::abort();
  }
  return 0;
}
