// Shared by the sources that implement warren/c_api.h: structs behind the C types, and helpers that run the
// work of a C function.
#pragma once

#include <fmt/format.h>

#include <memory>

#include "rabit_engine/api/c_result.h"
#include "rabit_engine/api/named_calls.h"
#include "rabit_engine/api/pending_call.h"
#include "rabit_engine/api/session.h"
#include "rabit_engine/base/error.h"
#include "warren/c_api.h"

struct WarrenComm_ {
  std::shared_ptr<warren::api::Session> session;
};
struct WarrenHandle_ {
  std::shared_ptr<warren::api::PendingCall> call;
};
struct WarrenCoordinator_ {
  std::shared_ptr<warren::api::NamedCalls> calls;
};

namespace warren::api::face {

/// Runs `function` with the communicator's session, which is kept alive until `function` returns. Returns
/// Attempt's result; fails if the communicator is null.
template <typename Function>
int On(WarrenComm comm, const char* name, Function&& function) {
  return Attempt([&] {
    const Call call{name};
    if (comm == nullptr) throw Misuse(fmt::format("rank unknown: {}: the communicator is null", name));
    const std::shared_ptr<Session> session = comm->session;
    function(*session, call);
  });
}

/// Refuses options, if there are any, whose struct is smaller than this library's. `kind`: "CALL" for options
/// that WARREN_CALL_OPTIONS initializes.
template <typename Options>
void RequireWhole(const Session& session, const Call& call, const Options* options, const char* kind) {
  if (options == nullptr || options->struct_bytes >= sizeof(Options)) return;
  session.Refuse(
      call,
      fmt::format("struct_bytes of the options is too small; initialise them with WARREN_{}_OPTIONS", kind));
}

}  // namespace warren::api::face
