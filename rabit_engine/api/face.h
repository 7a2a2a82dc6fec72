// Shared by the C++ and C APIs of rabit and XGBoost 1.7: error translation, and queries that work inside and
// outside a job.
#pragma once

#include <dmlc/logging.h>

#include <string>
#include <utility>

#include "rabit_engine/api/session.h"
#include "rabit_engine/base/error.h"

namespace warren::api {

/// Runs the function and translates the engine's errors to dmlc::Error, which rabit's callers expect and
/// XGBoost's C API reports.
template <typename Function>
auto Translated(Function&& function) {
  try {
    return function();
  } catch (const EngineError& error) {
    throw dmlc::Error(error.what());
  }
}

/// The job as seen from the calling thread. `threads`: the job that is used by a thread that has not called
/// Init.
template <Threads threads>
class Face {
 public:
  /// Runs the function with the job's session. Throws dmlc::Error if there is no job or the function throws
  /// EngineError.
  template <typename Function>
  static auto WithSession(const Call& call, Function&& function) {
    return Translated([&] { return function(*Session::Require(call, threads)); });
  }
  static bool Finalize(const Call& call) {
    return Translated([&] { return Session::Finalize(call, threads); });
  }

  // Outside a job, these return the values of a single process, an empty host name, and `outside` as the
  // version.
  static int rank() {
    return Ask(0, [](const Session& session) { return session.rank(); });
  }
  static int world_size() {
    return Ask(1, [](const Session& session) { return session.world_size(); });
  }
  static int ring_prev_rank() {
    return Ask(0, [](const Session& session) { return session.ring_prev_rank(); });
  }
  static bool is_distributed() {
    return Ask(false, [](const Session& session) { return session.is_distributed(); });
  }
  static std::string host() {
    return Ask(std::string(), [](const Session& session) { return session.host(); });
  }
  static int version_or(int outside) {
    return Ask(outside, [](Session& session) { return session.version(); });
  }
  /// Outside a job, calls `print(text)`.
  template <typename Print>
  static void TrackerPrint(const Call& call, const std::string& text, Print&& print) {
    const auto session = Session::Find(threads);
    if (!session) return print(text);
    Translated([&] { session->TrackerPrint(call, text); });
  }

 private:
  template <typename Value, typename Question>
  static Value Ask(Value outside, Question&& question) {
    const auto session = Session::Find(threads);
    return session ? question(*session) : std::move(outside);
  }
};

}  // namespace warren::api
