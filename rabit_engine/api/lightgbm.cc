// LightGBM's two collectives over the job that this thread has joined, for LGBM_NetworkInitWithFunctions
// (LightGBM's include/LightGBM/c_api.h; the types are those of its meta.h). What a reduction is comes as a
// function of LightGBM's.
//
// Errors are exceptions: LightGBM's C functions hand std::exception to their callers.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "rabit_engine/api/caller_function.h"
#include "rabit_engine/api/session.h"

namespace {

using warren::DataType;
using warren::Operation;
using warren::Reduction;
using warren::api::Call;
using warren::api::CallerFunction;
using warren::api::Session;
using warren::api::Threads;

/// output[i] += input[i], whatever that is for elements of `type_size` bytes; `bytes` is of all of them.
using ReduceFunction = void (*)(const char* input, char* output, int type_size, std::int32_t bytes);

thread_local ReduceFunction current_reducer = nullptr;

/// LightGBM's function in the shape of rabit's callers' ones, which are given aligned elements.
void RunCurrent(const void* src, void* dst, int count, const MPI::Datatype& type) {
  const auto type_size = static_cast<int>(type.type_size);
  current_reducer(static_cast<const char*>(src), static_cast<char*>(dst), type_size, count * type_size);
}

constexpr std::size_t kAsked = 16;
using Asked = std::array<double, kAsked>;

/// Whether the function makes of these what the language's sum does, to the last bit.
bool Sums(ReduceFunction reducer, const Asked& left, const Asked& right) {
  Asked expected = left;
  for (std::size_t i = 0; i < kAsked; ++i) expected[i] += right[i];
  Asked found = left;
  reducer(reinterpret_cast<const char*>(right.data()), reinterpret_cast<char*>(found.data()), sizeof(double),
          static_cast<std::int32_t>(sizeof(found)));
  using Bits = std::array<std::uint64_t, kAsked>;
  return std::bit_cast<Bits>(found) == std::bit_cast<Bits>(expected);
}

/// What a function is known to compute from what it does with a few elements: histograms of 64-bit floating
/// point are summed up, and the engine's kernels do that faster. Anything else stays LightGBM's.
std::optional<Reduction> Recognised(ReduceFunction reducer, int type_size) {
  if (type_size != sizeof(double)) return std::nullopt;
  thread_local ReduceFunction asked = nullptr;
  thread_local std::optional<Reduction> answer;
  if (asked == reducer) return answer;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kSmall = std::numeric_limits<double>::denorm_min();
  const Asked left{0.1, 1e300, -0.0, 3,    kSmall, kInfinity, 1.0 / 3, -7e-200,
                   1,   1e16,  -5,   0.25, 2,      0.7,       -0.0,    1e308};
  const Asked right{0.2, -1e300, -0.0, 1e-17, kSmall, 1,    2.0 / 3, 8e-200,
                    1,   1,      5,    0.5,   1e-3,   -0.7, 0.0,     -1e307};
  asked = reducer;
  answer.reset();
  if (Sums(reducer, left, right)) answer = Reduction::Typed(DataType::kDouble, Operation::kSum);
  return answer;
}

/// Where each rank's block begins, in units of `unit` bytes, and where the last ends. Misuse unless they
/// join.
std::vector<std::size_t> Offsets(Session& session, const Call& call, const std::int32_t* start,
                                 const std::int32_t* length, int num_blocks, std::int32_t unit) {
  if (num_blocks != session.world_size() || unit <= 0) {
    session.Refuse(call, "LightGBM has another number of machines than this job has workers");
  }
  std::vector<std::size_t> offsets(1, 0);
  for (int block = 0; block < num_blocks; ++block) {
    if (start[block] < 0 || length[block] < 0 || length[block] % unit != 0 ||
        static_cast<std::size_t>(start[block]) != offsets.back() * static_cast<std::size_t>(unit)) {
      session.Refuse(call, "LightGBM's blocks do not lie one behind the other");
    }
    offsets.push_back(offsets.back() + static_cast<std::size_t>(length[block] / unit));
  }
  return offsets;
}

}  // namespace

#define WARREN_C_API extern "C" __attribute__((visibility("default")))

/// A LightGBM::ReduceScatterFunction. `input` is overwritten, as by LightGBM's own.
WARREN_C_API void WarrenLightGBMReduceScatter(char* input, std::int32_t /*input_size*/, int type_size,
                                              const std::int32_t* block_start, const std::int32_t* block_len,
                                              int num_block, char* output, std::int32_t /*output_size*/,
                                              const ReduceFunction& reducer) {
  const Call call{"LightGBM's reduce-scatter"};
  const auto session = Session::Require(call, Threads::kShare);
  const auto offsets = Offsets(*session, call, block_start, block_len, num_block, type_size);
  if (const auto known = Recognised(reducer, type_size)) {
    session->ReduceScatter(call, input, offsets, *known);
  } else {
    current_reducer = reducer;
    CallerFunction function(&RunCurrent, static_cast<std::size_t>(type_size));
    session->ReduceScatter(call, input, offsets, function.reduction());
  }
  const int rank = session->rank();
  std::memmove(output, input + block_start[rank], static_cast<std::size_t>(block_len[rank]));
}

/// A LightGBM::AllgatherFunction. This rank's block is at the beginning of `input`, which may be `output`.
WARREN_C_API void WarrenLightGBMAllgather(char* input, std::int32_t /*input_size*/,
                                          const std::int32_t* block_start, const std::int32_t* block_len,
                                          int num_block, char* output, std::int32_t /*output_size*/) {
  const Call call{"LightGBM's allgather"};
  const auto session = Session::Require(call, Threads::kShare);
  const auto offsets = Offsets(*session, call, block_start, block_len, num_block, 1);
  const int rank = session->rank();
  std::memmove(output + block_start[rank], input, static_cast<std::size_t>(block_len[rank]));
  session->Allgather(call, output, offsets);
}
