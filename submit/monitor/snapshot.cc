#include "submit/monitor/snapshot.h"

namespace warren::submit {

const char* Name(WorkerState state) {
  switch (state) {
    case WorkerState::kWaiting:
      return "waiting";
    case WorkerState::kStarting:
      return "starting";
    case WorkerState::kRunning:
      return "running";
    case WorkerState::kStuck:
      return "stuck";
    case WorkerState::kSucceeded:
      return "succeeded";
    case WorkerState::kFailed:
      return "failed";
  }
  return "";
}

}  // namespace warren::submit
