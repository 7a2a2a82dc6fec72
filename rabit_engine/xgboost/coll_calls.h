// How XGBoost calls the four functions of its class Coll that matter here, read from the words that arrive in
// registers and on the stack. The declarations are those of XGBoost's src/collective/coll.h, 2.1 to 3.4; the
// places of the words are those of the System V ABI of x86-64 and of the AAPCS64 of 64-bit Arm. Their
// result, a class with a destructor, and `this` come before and are not among the words.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace warren::xgboost {

using Word = std::uintptr_t;
/// As many as the longest of these calls has, in the widest convention.
inline constexpr std::size_t kNumWords = 12;
using Words = std::array<Word, kNumWords>;

/// What the versions differ in.
enum class Convention {
  kSpansByReference,  ///< 2.1: the address of a span {size, data}
  kSpansByValue,      ///< 3.0 to 3.2: its size and its data
  kWithContext,       ///< from 3.3 on: the same, after a Context
};

/// Where a processor's ABI puts integer arguments that follow `this`.
struct ArgumentAbi {
  std::size_t num_registers;  ///< the first words
  bool pair_ends_registers;   ///< one of 16 bytes that they have no room for leaves none for those after it
};
inline constexpr ArgumentAbi kX86{4, false};
inline constexpr ArgumentAbi kArm{7, true};
#if defined(__aarch64__)
inline constexpr ArgumentAbi kAbi = kArm;
#else
inline constexpr ArgumentAbi kAbi = kX86;
#endif

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

/// Whether words that should be the addresses of spans are known to be.
enum class Reading {
  kTrusting,
  kSafe,  ///< where one is none, the span is empty
};

AllreduceCall ReadAllreduce(Convention convention, const Words& words, ArgumentAbi abi = kAbi,
                            Reading reading = Reading::kTrusting);
BroadcastCall ReadBroadcast(Convention convention, const Words& words, ArgumentAbi abi = kAbi,
                            Reading reading = Reading::kTrusting);
AllgatherCall ReadAllgather(Convention convention, const Words& words, ArgumentAbi abi = kAbi,
                            Reading reading = Reading::kTrusting);
AllgatherVCall ReadAllgatherV(Convention convention, const Words& words, ArgumentAbi abi = kAbi,
                              Reading reading = Reading::kTrusting);

/// The convention in which these words are this call (whatever their comm); nothing unless there is exactly
/// one. Words that are no addresses do no harm.
std::optional<Convention> ConventionOf(const Words& words, const AllreduceCall& expected,
                                       ArgumentAbi abi = kAbi);

/// Whether `bytes` at this address can be read, and what they are; at most 4096. Asks the kernel, so that an
/// address of nothing does no harm.
bool ReadSafely(const void* address, void* out, std::size_t bytes);

}  // namespace warren::xgboost
