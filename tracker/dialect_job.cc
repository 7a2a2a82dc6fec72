#include "tracker/dialect_job.h"

#include <fmt/format.h>

#include "wire/membership.h"

namespace warren::tracker {

std::string OwnTask(const JobOptions& options, const std::string& task_id) {
  if (!options.elastic) return task_id;
  const auto [task, generation] = wire::SplitGeneration(task_id);
  if (generation == options.generation && generation > 0) return task;
  if (generation == 0) {
    throw wire::ProtocolError(
        "it names no generation: workers of a job that may lose some of them (--num-workers MIN:MAX) join by warren.xgboost.communicator");
  }
  throw wire::ProtocolError(fmt::format("it belongs to generation {} of this job, and {}", generation,
                                        options.generation > 0
                                            ? fmt::format("generation {} has begun", options.generation)
                                            : "its workers have not come together yet"));
}

}  // namespace warren::tracker
