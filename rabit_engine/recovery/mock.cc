// The only object that is in librabit_mock but not in librabit.
#include "rabit_engine/recovery/mock.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "rabit_engine/base/error.h"
#include "rabit_engine/base/say.h"

namespace warren::recovery {
namespace {

/// Launchers written for rabit restart a process that exits with this code.
constexpr int kExitCode = 254;

}  // namespace

void MockBefore(std::string_view call, const Settings& settings, int rank, int version, std::uint64_t seqno) {
  for (const std::string& text : settings.mock) {
    int of_rank = 0;
    int of_version = 0;
    unsigned long long of_seqno = 0;
    int of_trial = 0;
    int end = 0;
    const int read =
        std::sscanf(text.c_str(), "%d,%d,%llu,%d%n", &of_rank, &of_version, &of_seqno, &of_trial, &end);
    if (read != 4 || static_cast<std::size_t>(end) != text.size()) {
      throw Misuse(fmt::format("mock={}: expected mock=rank,version,seqno,trial", text));
    }
    if (of_rank != rank || of_version != version || of_seqno != seqno || of_trial != settings.num_attempt)
      continue;
    Say("rabit: rank {} ends before {} of version {}, call {}, as mock={} says", rank, call, version, seqno,
        text);
    std::fflush(nullptr);
    std::_Exit(kExitCode);
  }
}

}  // namespace warren::recovery
