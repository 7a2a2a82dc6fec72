// Decodes XGBoost's calls to the four relevant functions of its class Coll from the words that arrive in
// registers and on the stack. The declarations are those of XGBoost's src/collective/coll.h, 2.1 to 3.4; the
// placement of the words follows the System V ABI of x86-64 and the AAPCS64 of 64-bit Arm. The words do not
// include the pointer to the result (a class with a destructor) and `this`, which come first.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace warren::xgboost {

using Word = std::uintptr_t;
/// The largest number of words in one of these calls, in any convention and ABI.
inline constexpr std::size_t kNumWords = 12;
using Words = std::array<Word, kNumWords>;

/// The calling convention for spans, which depends on the version of XGBoost.
enum class Convention {
  kSpansByReference,  ///< 2.1: a span is passed as the address of {size, data}
  kSpansByValue,      ///< 3.0 to 3.2: a span is passed as two words, size and data
  kWithContext,       ///< since 3.3: like kSpansByValue, after a Context
};

struct Bytes {
  std::size_t size = 0;
  std::byte* data = nullptr;
};

struct AllreduceCall {
  const void* comm = nullptr;
  Bytes data;
  int type = -1;
  int operation = -1;
};
struct BroadcastCall {
  const void* comm = nullptr;
  Bytes data;
  int root = -1;
};
struct AllgatherCall {
  const void* comm = nullptr;
  Bytes data;
};
struct AllgatherVCall {
  const void* comm = nullptr;
  Bytes data;
  std::span<const std::int64_t> sizes;
  std::span<std::int64_t> segments;
  Bytes received;
};

/// The treatment of words that should be addresses of spans.
enum class Reading {
  kTrusting,  ///< the addresses are known to be valid
  kSafe,      ///< invalid addresses are read as empty spans
};

AllreduceCall ReadAllreduce(Convention convention, const Words& words, Reading reading = Reading::kTrusting);
BroadcastCall ReadBroadcast(Convention convention, const Words& words, Reading reading = Reading::kTrusting);
AllgatherCall ReadAllgather(Convention convention, const Words& words, Reading reading = Reading::kTrusting);
AllgatherVCall ReadAllgatherV(Convention convention, const Words& words);

/// Returns the convention in which these words encode the expected call, whatever its `comm`; nullopt unless
/// exactly one convention fits. Words that are not valid addresses do no harm.
std::optional<Convention> ConventionOf(const Words& words, const AllreduceCall& expected);

/// Copies `bytes` bytes, at most 4096, from this address. Returns false if they cannot be read. The kernel
/// checks the address, so an invalid one does no harm.
bool ReadSafely(const void* address, void* out, std::size_t bytes);

}  // namespace warren::xgboost
