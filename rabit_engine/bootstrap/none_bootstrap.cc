#include "rabit_engine/bootstrap/none_bootstrap.h"

#include <cstdio>

namespace warren {

void NoneBootstrap::Print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (!text.ends_with('\n')) std::fputc('\n', stdout);
  std::fflush(stdout);
}

}  // namespace warren
