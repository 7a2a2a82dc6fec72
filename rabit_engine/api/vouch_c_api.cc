// WarrenVouch of warren/c_api.h, which admits a worker whose protocol has no job token. Needs no session.
#include "rabit_engine/api/c_result.h"
#include "rabit_engine/base/error.h"
#include "rabit_engine/base/settings.h"
#include "rabit_engine/bootstrap/tracker_connection.h"
#include "warren/c_api.h"

int WarrenVouch(const char* tracker_uri, int tracker_port, const char* task_id, const char* ticket) {
  return warren::api::Attempt([&] {
    warren::Settings settings = warren::ReadSettings({});
    if (tracker_uri != nullptr) {
      settings.tracker_host = tracker_uri;
      settings.tracker_port = tracker_port;
    }
    if (task_id != nullptr) settings.task_id = task_id;
    if (!settings.job_token || ticket == nullptr) {
      throw warren::Misuse(
          "WarrenVouch: a process without the job's token (DMLC_JOB_TOKEN) or a ticket cannot vouch");
    }
    warren::VouchAtTracker(settings, ticket);
  });
}
