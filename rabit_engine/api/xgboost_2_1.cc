// The API for XGBoost 2.1 and later. warren.xgboost calls the functions WarrenXGBoost* with ctypes, to turn
// the engine on for an XGBoost communicator. The other functions replace XGBoost's if this library is linked
// or preloaded before libxgboost: XGCommunicatorInit and XGCommunicatorFinalize, with which C++ and Java
// programs join and leave, then also turn the engine on and off, and XGBGetLastError also returns this
// library's errors.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>

#include "rabit_engine/api/xgboost_use.h"
#include "rabit_engine/xgboost/coll_engine.h"
#include "rabit_engine/xgboost/loaded_library.h"
#include "wire/bytes.h"
#include "wire/flat_json.h"

namespace {

/// Copies as much of the text as fits, with a terminating 0.
void CopyText(const std::string& text, char* out, std::size_t out_bytes) {
  if (out == nullptr || out_bytes == 0) return;
  const std::size_t length = std::min(text.size(), out_bytes - 1);
  std::memcpy(out, text.data(), length);
  out[length] = '\0';
}

enum class Choice { kOwn, kWarren, kAuto };

/// Reads WARREN_XGBOOST_ENGINE. Throws std::runtime_error if its value is invalid.
Choice ReadChoice() {
  const char* value = std::getenv("WARREN_XGBOOST_ENGINE");
  const std::string_view choice = value == nullptr ? "" : value;
  if (choice.empty() || choice == "auto") return Choice::kAuto;
  if (choice == "warren") return Choice::kWarren;
  if (choice == "own") return Choice::kOwn;
  throw std::runtime_error(
      fmt::format("WARREN_XGBOOST_ENGINE is '{}', expected 'own', 'warren' or 'auto'", choice));
}

/// Returns XGBoost's own function of this name, or null if it is not found.
template <typename Function>
Function* OwnFunction(const char* name) {
  void* address = dlsym(RTLD_NEXT, name);
  if (address == nullptr) {  // RTLD_NEXT does not see a libxgboost that Python has loaded
    const auto library = warren::xgboost::LoadedLibrary::Defining(name);
    if (library) address = library->Find(name);
  }
  return reinterpret_cast<Function*>(address);
}

/// Returns the timeout for peers from XGCommunicatorInit's JSON argument; 0 if the JSON contains no valid
/// timeout.
std::chrono::seconds TimeoutOf(const char* config) {
  for (const char* name : {"dmlc_timeout", "DMLC_TIMEOUT"}) {  // the names XGBoost looks for, in its order
    try {
      const warren::wire::FlatJson values("the communicator's configuration",
                                          config == nullptr ? "" : config);
      return std::chrono::seconds(values.Int(name, 0, std::numeric_limits<std::int32_t>::max()));
    } catch (const warren::wire::ProtocolError&) {
      continue;
    }
  }
  return {};
}

/// For XGBGetLastError: the last error of this library, and XGBoost's own last error at that time.
thread_local std::string last_error;
thread_local std::string own_error_before;

const char* OwnLastError() {
  auto* const own = OwnFunction<const char*()>("XGBGetLastError");
  return own == nullptr ? "" : own();
}

/// Turns the engine on for the communicator that has just been joined. If this rank or another rank demands
/// the engine, but the engine cannot serve the communicator, prints and stores the error and returns false.
bool BeginWhereItCan(const void* in_xgboost, std::chrono::seconds timeout) {
  const auto library = warren::xgboost::LoadedLibrary::Containing(in_xgboost);
  const auto own = [&](const char* name) { return library ? library->Find(name) : nullptr; };
  const auto world_size = reinterpret_cast<int (*)()>(own("XGCommunicatorGetWorldSize"));
  // Before 2.1, XGBoost has no class Coll whose calls could be served; XGBoost 1.7 is served by
  // xgboost_1_7.cc.
  if (world_size == nullptr || own("XGCommunicatorAllgather") == nullptr) return true;
  warren::api::NoteXgboostsUse();
  if (world_size() < 2) return true;
  // Any objection of this rank must reach the other ranks.
  warren::xgboost::Wish wish;
  wish.timeout = timeout;
  Choice choice = Choice::kWarren;
  warren::xgboost::Beginning beginning;
  try {
    try {
      choice = ReadChoice();
      wish.wants = choice != Choice::kOwn;
      if (choice == Choice::kOwn) wish.objection = "WARREN_XGBOOST_ENGINE is own";
    } catch (const std::runtime_error& error) {
      wish.objection = error.what();
    }
    wish.demands = choice == Choice::kWarren;
    beginning = warren::xgboost::Begin(in_xgboost, wish);
  } catch (const std::exception& error) {
    // XGBoost's own communication has failed, or another rank is in another call: whatever this rank received
    // or sent next would be wrong.
    beginning.why_not = error.what();
    beginning.is_demanded = true;
  }
  if (beginning.serves) return true;
  if (choice == Choice::kWarren || beginning.is_demanded) {
    last_error = "XGBoost cannot communicate over Warren's engine: " + beginning.why_not;
    std::fprintf(stderr, "rabit: %s\n", last_error.c_str());
    return false;
  }
  if (beginning.tells) {
    std::fprintf(stderr, "rabit: XGBoost keeps its own communication: %s\n", beginning.why_not.c_str());
  }
  return true;
}

}  // namespace

#define WARREN_C_API extern "C" __attribute__((visibility("default")))

/// Returns 1 if this rank finds no reason why the engine cannot serve the XGBoost that contains `in_xgboost`
/// (the address of any function of XGBoost's C API), else 0, with the reasons in `why_not` (UTF-8, truncated
/// to `bytes` including the terminating 0). Does not communicate. Thread-safe.
WARREN_C_API int WarrenXGBoostCheck(const void* in_xgboost, char* why_not, std::size_t bytes) {
  warren::api::NoteXgboostsUse();
  const std::string objections = warren::xgboost::Objections(in_xgboost);
  CopyText(objections, why_not, bytes);
  return objections.empty() ? 1 : 0;
}

/// Turns the engine on for this thread's communicator. All ranks of the communicator, at least two, must call
/// this function. From then on, a collective waits for a peer for at most `timeout_s` seconds (0 or less:
/// half an hour), unless rabit_timeout=1 and rabit_timeout_sec set another limit. Returns 1 if the engine is
/// on for all ranks; 0 if it is off for all ranks, or -1 if XGBoost's own communication failed, with the
/// reason in `why_not`.
WARREN_C_API int WarrenXGBoostBegin(const void* in_xgboost, int timeout_s, char* why_not, std::size_t bytes) {
  try {
    warren::xgboost::Wish wish;
    wish.timeout = std::chrono::seconds(std::max(timeout_s, 0));
    const auto beginning = warren::xgboost::Begin(in_xgboost, wish);
    CopyText(beginning.why_not, why_not, bytes);
    return beginning.serves ? 1 : 0;
  } catch (const std::exception& error) {
    CopyText(error.what(), why_not, bytes);
    return -1;
  }
}

/// Turns the engine off. Before the communicator is finalized, all ranks must call this function, on the
/// thread that turned the engine on; the call waits until all have done so. If `failed` is not 0, or an
/// earlier call over the engine has failed, this rank does not wait: it gives up and informs the others.
/// Returns 0, or -1 with the reason in `error`.
WARREN_C_API int WarrenXGBoostEnd(int failed, char* error, std::size_t bytes) {
  try {
    warren::xgboost::End(failed != 0);
    return 0;
  } catch (const std::exception& what) {
    CopyText(what.what(), error, bytes);
    return -1;
  }
}

/// The number of XGBoost's collective calls that the engine has served in this process. Thread-safe.
WARREN_C_API std::uint64_t WarrenXGBoostNumServed() {
  return warren::xgboost::NumServed();
}

WARREN_C_API int XGCommunicatorInit(const char* config) {
  auto* const own = OwnFunction<int(const char*)>("XGCommunicatorInit");
  if (own == nullptr) {
    std::fprintf(stderr,
                 "rabit: XGCommunicatorInit was called, but there is no libxgboost in this process\n");
    return -1;
  }
  last_error.clear();
  warren::xgboost::End(true);  // XGBoost treats a second Init as the end of the first job
  const int code = own(config);
  if (code != 0) return code;
  if (BeginWhereItCan(reinterpret_cast<const void*>(own), TimeoutOf(config))) return 0;
  // Prevent the other workers from concluding that this worker has finished.
  if (auto* const signal_error = OwnFunction<int()>("XGCommunicatorSignalError")) signal_error();
  if (auto* const finalize = OwnFunction<int()>("XGCommunicatorFinalize")) finalize();
  own_error_before = OwnLastError();
  return -1;
}

WARREN_C_API int XGCommunicatorFinalize() {
  try {
    warren::xgboost::End(false);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rabit: %s\n", error.what());
  }
  auto* const own = OwnFunction<int()>("XGCommunicatorFinalize");
  return own == nullptr ? -1 : own();
}

/// Returns XGBoost's own last error, unless this library has reported a more recent one.
WARREN_C_API const char* XGBGetLastError() {
  const char* const own = OwnLastError();
  return !last_error.empty() && own == own_error_before ? last_error.c_str() : own;
}
