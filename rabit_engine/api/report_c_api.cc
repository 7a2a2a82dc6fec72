// The progress reports of warren/c_api.h. They need no session.
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "rabit_engine/api/c_result.h"
#include "rabit_engine/reporting/reporter.h"
#include "warren/c_api.h"

namespace {

using warren::api::Attempt;
using warren::reporting::Reporter;

std::string TextOf(const char* text) {
  return text == nullptr ? "" : text;
}

}  // namespace

int WarrenReportProgress(long long round, long long of, const char* const* names, const double* values,
                         size_t count) {
  Reporter* const reporter = Reporter::OfThisProcess();
  if (reporter == nullptr) return 0;
  return Attempt([&] {
    warren::wire::ReportedProgress progress;
    progress.round = std::max(round, 0LL);
    progress.of = std::max(of, 0LL);
    for (std::size_t i = 0; i < std::min(count, warren::wire::kMaxReportedMetrics); ++i) {
      progress.metrics.emplace_back(TextOf(names[i]), values[i]);
    }
    reporter->Tell(std::move(progress));
  });
}

int WarrenReportReading(const char* what, unsigned long long rows, unsigned long long bytes,
                        unsigned long long total_bytes, double seconds) {
  Reporter* const reporter = Reporter::OfThisProcess();
  if (reporter == nullptr) return 0;
  return Attempt([&] {
    reporter->Tell(warren::wire::ReportedReading{TextOf(what), rows, bytes, total_bytes, seconds});
  });
}
