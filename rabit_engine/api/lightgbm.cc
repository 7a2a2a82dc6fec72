// LightGBM's two collectives over the job that this thread uses, for LGBM_NetworkInitWithFunctions
// (LightGBM's include/LightGBM/c_api.h; the types are those of its meta.h). LightGBM passes its reductions as
// functions.
//
// Errors are exceptions: LightGBM's C functions report std::exception to their callers.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
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
using warren::ReduceOp;
using warren::Reduction;
using warren::api::Call;
using warren::api::CallerFunction;
using warren::api::Session;
using warren::api::Threads;

/// Combines input[i] with output[i] and stores the result in output[i], for elements of `type_size` bytes;
/// `bytes` is the size of each buffer.
using ReduceFunction = void (*)(const char* input, char* output, int type_size, std::int32_t bytes);

/// The reduction function of the current call, and the element size that LightGBM passes to it.
thread_local ReduceFunction current_reducer = nullptr;
thread_local int current_type_size = 0;

/// Adapts LightGBM's reduction to the signature of rabit's user-defined reductions, which receive aligned
/// elements.
void RunCurrent(const void* src, void* dst, int count, const MPI::Datatype& type) {
  current_reducer(static_cast<const char*>(src), static_cast<char*>(dst), current_type_size,
                  count * static_cast<int>(type.type_size));
}

/// Returns the number of bytes that must stay together. In histograms of quantized gradients with 16- or
/// 32-bit integers, LightGBM adds a gradient and a hessian as one integer of twice the size (its
/// include/LightGBM/bin.h). If the length of some block is not a multiple of that size, the data is not such
/// a histogram.
int ElementBytes(int type_size, std::span<const std::int32_t> lengths) {
  if (type_size != 2 && type_size != 4) return type_size;
  const int pair = 2 * type_size;
  return std::ranges::all_of(lengths, [pair](int bytes) { return bytes % pair == 0; }) ? pair : type_size;
}

/// Whether the function's result for these elements is bitwise equal to their sum.
template <typename Element, std::size_t kCount>
bool Sums(ReduceFunction reducer, int type_size, const std::array<Element, kCount>& left,
          const std::array<Element, kCount>& right) {
  std::array<Element, kCount> expected = left;
  for (std::size_t i = 0; i < kCount; ++i) expected[i] += right[i];
  std::array<Element, kCount> found = left;
  reducer(reinterpret_cast<const char*>(right.data()), reinterpret_cast<char*>(found.data()), type_size,
          static_cast<std::int32_t>(sizeof(found)));
  using Bits = std::array<unsigned char, sizeof(found)>;
  return std::bit_cast<Bits>(found) == std::bit_cast<Bits>(expected);
}

/// Tries the function on a few elements. Returns the engine's reduction if the function has summed them,
/// otherwise nullopt.
std::optional<Reduction> Ask(ReduceFunction reducer, int type_size) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kSmall = std::numeric_limits<double>::denorm_min();
  constexpr std::array<double, 16> kLeft{0.1, 1e300, -0.0, 3,    kSmall, kInfinity, 1.0 / 3, -7e-200,
                                         1,   1e16,  -5,   0.25, 2,      0.7,       -0.0,    1e308};
  constexpr std::array<double, 16> kRight{0.2, -1e300, -0.0, 1e-17, kSmall, 1,    2.0 / 3, 8e-200,
                                          1,   1,      5,    0.5,   1e-3,   -0.7, 0.0,     -1e307};
  // Sums that carry from the lower half of an element into the upper half, and sums that do not.
  constexpr std::array<std::int64_t, 4> kLongLeft{0x7fffffff, -1, 5, -0x123456789a};
  constexpr std::array<std::int64_t, 4> kLongRight{1, -1, 0x100000000, 0x9876543210};
  constexpr std::array<std::int32_t, 4> kIntLeft{0x7fff, -1, 5, -0x12345};
  constexpr std::array<std::int32_t, 4> kIntRight{1, -1, 0x10000, 0x54321};
  if (type_size == 8 && Sums(reducer, type_size, kLeft, kRight)) {
    return Reduction::Typed(DataType::kDouble, ReduceOp::kSum);
  }
  if (type_size == 4 && Sums(reducer, type_size, kLongLeft, kLongRight)) {
    return Reduction::Typed(DataType::kLongLong, ReduceOp::kSum);
  }
  if (type_size == 2 && Sums(reducer, type_size, kIntLeft, kIntRight)) {
    return Reduction::Typed(DataType::kInt, ReduceOp::kSum);
  }
  return std::nullopt;
}

/// Returns the engine's reduction if the function sums histograms; otherwise nullopt: LightGBM's function
/// must be called. The answers are cached per thread.
std::optional<Reduction> Recognised(ReduceFunction reducer, int type_size) {
  struct Answer {
    ReduceFunction reducer = nullptr;
    int type_size = 0;
    std::optional<Reduction> reduction;
  };
  thread_local std::array<Answer, 4> answers;  // LightGBM has three functions that sum histograms
  thread_local std::size_t next = 0;
  for (const Answer& answer : answers) {
    if (answer.reducer == reducer && answer.type_size == type_size) return answer.reduction;
  }
  Answer& answer = answers[next++ % answers.size()];
  answer = {reducer, type_size, Ask(reducer, type_size)};
  return answer.reduction;
}

/// Returns the offset of each rank's block, followed by the end of the last block, in units of `unit` bytes.
/// Throws Misuse unless there is one block per rank, and the blocks start at 0, are contiguous and contain
/// whole units.
std::vector<std::size_t> OffsetsOfBlocks(Session& session, const Call& call, const std::int32_t* start,
                                         const std::int32_t* length, int num_blocks, std::int32_t unit) {
  if (num_blocks != session.world_size() || unit <= 0) {
    session.Refuse(call, "LightGBM's number of machines is not this job's number of workers");
  }
  std::vector<std::size_t> offsets(1, 0);
  for (int block = 0; block < num_blocks; ++block) {
    if (length[block] < 0 || length[block] % unit != 0) {
      session.Refuse(call, "a LightGBM block does not hold a whole number of elements");
    }
    if (start[block] < 0 ||
        static_cast<std::size_t>(start[block]) != offsets.back() * static_cast<std::size_t>(unit)) {
      session.Refuse(call, "LightGBM's blocks are not contiguous");
    }
    offsets.push_back(offsets.back() + static_cast<std::size_t>(length[block] / unit));
  }
  return offsets;
}

/// A mean that LightGBM computes from this worker's rows and then averages over all workers, and the value to
/// send in its place.
struct Correction {
  double own = 0;
  double tolerance = 0;
  double replacement = 0;

  bool IsOf(double value) const {
    if (std::isnan(own)) return std::isnan(value);
    return value == own || std::fabs(value - own) <= tolerance;
  }
};

thread_local std::optional<Correction> correction;

/// Replaces the value in this worker's block if the block is a double that `correction` matches.
void Correct(char* own, std::int32_t bytes) {
  double value = 0;
  if (!correction || bytes != sizeof(value)) return;
  std::memcpy(&value, own, sizeof(value));
  if (!correction->IsOf(value)) return;
  std::memcpy(own, &correction->replacement, sizeof(value));
  correction.reset();
}

}  // namespace

#define WARREN_C_API extern "C" __attribute__((visibility("default")))

/// A LightGBM::ReduceScatterFunction. Overwrites `input`, as LightGBM's own function does.
WARREN_C_API void WarrenLightGBMReduceScatter(char* input, std::int32_t /*input_size*/, int type_size,
                                              const std::int32_t* block_start, const std::int32_t* block_len,
                                              int num_block, char* output, std::int32_t /*output_size*/,
                                              const ReduceFunction& reducer) {
  const Call call{"LightGBM's reduce-scatter"};
  const auto session = Session::Require(call, Threads::kShare);
  const int element = ElementBytes(type_size, {block_len, static_cast<std::size_t>(std::max(num_block, 0))});
  const auto offsets = OffsetsOfBlocks(*session, call, block_start, block_len, num_block, element);
  const auto known = Recognised(reducer, type_size);
  if (known && known->element_bytes() == static_cast<std::size_t>(element)) {
    session->Run(call, Operation::ReduceScatter(input, offsets, *known));
  } else {
    current_reducer = reducer;
    current_type_size = type_size;
    CallerFunction function(&RunCurrent, static_cast<std::size_t>(element));
    session->Run(call, Operation::ReduceScatter(input, offsets, function.reduction()));
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
  const auto offsets = OffsetsOfBlocks(*session, call, block_start, block_len, num_block, 1);
  const int rank = session->rank();
  std::memmove(output + block_start[rank], input, static_cast<std::size_t>(block_len[rank]));
  Correct(output + block_start[rank], block_len[rank]);
  session->Run(call, Operation::Allgather(output, offsets));
}

/// Makes this thread send `replacement` in the next allgather in which its block is a double that equals
/// `own` within `tolerance` (or is NaN, like `own`).
WARREN_C_API void WarrenLightGBMCorrect(double own, double tolerance, double replacement) {
  correction = Correction{own, tolerance, replacement};
}

/// Ends the correction that WarrenLightGBMCorrect has begun. Returns 1 if the value has been replaced,
/// otherwise 0.
WARREN_C_API int WarrenLightGBMCorrected() {
  const bool is_replaced = !correction;
  correction.reset();
  return is_replaced ? 1 : 0;
}
