#include "rabit_engine/reporting/job_timeline.h"

#include <utility>

#include "rabit_engine/reporting/reporter.h"

namespace warren::reporting {

std::shared_ptr<Timeline> NewTimeline(const Settings& settings, const Communicator& communicator) {
  Reporter* const reporter = settings.report_timeline ? Reporter::OfThisProcess() : nullptr;
  if (settings.timeline.empty() && reporter == nullptr) return nullptr;
  Timeline::Listener listener;
  if (reporter != nullptr) {
    reporter->SetRank(communicator.rank(), communicator.world_size());
    listener = [reporter](wire::TracedEvent event) { reporter->Trace(std::move(event)); };
  }
  return std::make_shared<Timeline>(settings.timeline, communicator.rank(), communicator.host(),
                                    std::move(listener));
}

}  // namespace warren::reporting
