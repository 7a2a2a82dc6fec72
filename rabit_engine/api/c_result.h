// The C APIs' return codes: 0, or -1 with a message that is kept until the thread's next error.
#pragma once

#include <exception>
#include <string>

#include "rabit_engine/api/forced_unwind.h"
#include "rabit_engine/api/session.h"
#include "rabit_engine/base/error.h"

namespace warren::api {

inline std::string& LastError() {
  // When the process ends, the main thread's thread_local objects are destroyed before atexit functions and
  // destructors of statics run, which may still make calls. A bool has no destructor and stays valid.
  thread_local bool is_destroyed = false;
  struct Text {
    std::string text;
    bool& destroyed;
    ~Text() { destroyed = true; }
  };
  if (is_destroyed) {
    static std::string& last = *new std::string;
    return last;
  }
  thread_local Text text{{}, is_destroyed};
  return text.text;
}

/// Runs the function. Returns 0 or, if it throws, stores the error's message and returns -1.
template <typename Function>
int Attempt(Function&& function) {
  try {
    function();
    return 0;
  } catch (const ForcedUnwind&) {
    throw;  // the thread is being terminated: as Python exits, it terminates threads that call into it
  } catch (const std::exception& error) {
    LastError() = error.what();
  } catch (...) {
    LastError() = "an exception from the caller's function";
  }
  return -1;
}

/// Like Attempt, but passes the session that this thread uses to the function. Fails if the thread has no
/// session.
template <typename Function>
int AttemptWithSession(const Call& call, Function&& function) {
  return Attempt([&] { function(*Session::Require(call, Threads::kShare)); });
}

/// Ends the session that this thread uses, if any. Also fails if an error had already ended the job.
inline int AttemptFinalize(const Call& call) {
  return Attempt([&] {
    if (Session::Finalize(call, Threads::kShare)) return;
    throw EngineError(std::string(call.name) + ": an earlier error had ended the job for this rank");
  });
}

}  // namespace warren::api
