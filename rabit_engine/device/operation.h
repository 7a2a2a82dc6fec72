// The description of a collective on device memory. The codes of element types and reductions are those of
// rabit/device.h, the same as NCCL's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rabit_engine/call/collective.h"

namespace warren::device {

enum class Type : std::int32_t {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kUint32 = 3,
  kInt64 = 4,
  kUint64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBFloat16 = 9,
  kFloat8E4M3 = 10,
  kFloat8E5M2 = 11,
};
inline constexpr int kNumTypes = 12;

enum class ReduceOp : std::int32_t { kSum = 0, kProduct = 1, kMax = 2, kMin = 3, kAverage = 4 };
inline constexpr int kNumReduceOps = 5;

/// `count` is as in rabit/device.h: elements of a rank's input for Allgather, of its output for
/// ReduceScatter, of both for the others. `operation` is used only by reductions, `root` only by broadcasts.
struct Operation {
  Collective kind = Collective::kAllreduce;
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t count = 0;
  Type type = Type::kFloat32;
  ReduceOp operation = ReduceOp::kSum;
  std::int32_t root = 0;
  void* stream = nullptr;  ///< a cudaStream_t
};

constexpr std::size_t SizeOf(Type type) {
  switch (type) {
    case Type::kInt8:
    case Type::kUint8:
    case Type::kFloat8E4M3:
    case Type::kFloat8E5M2:
      return 1;
    case Type::kFloat16:
    case Type::kBFloat16:
      return 2;
    case Type::kInt32:
    case Type::kUint32:
    case Type::kFloat32:
      return 4;
    default:
      return 8;
  }
}

constexpr std::string_view Name(Type type) {
  constexpr std::string_view kNames[] = {"int8",    "uint8",    "int32",      "uint32",
                                         "int64",   "uint64",   "float16",    "float32",
                                         "float64", "bfloat16", "float8e4m3", "float8e5m2"};
  return kNames[static_cast<int>(type)];
}

constexpr std::string_view Name(ReduceOp operation) {
  constexpr std::string_view kNames[] = {"sum", "product", "max", "min", "average"};
  return kNames[static_cast<int>(operation)];
}

/// Return the size in bytes of a rank's input (SendBytes) or output (ReceiveBytes).
constexpr std::size_t SendBytes(const Operation& call, int world_size) {
  const std::size_t bytes = call.count * SizeOf(call.type);
  return call.kind == Collective::kReduceScatter ? bytes * static_cast<std::size_t>(world_size) : bytes;
}
constexpr std::size_t ReceiveBytes(const Operation& call, int world_size) {
  const std::size_t bytes = call.count * SizeOf(call.type);
  return call.kind == Collective::kAllgather ? bytes * static_cast<std::size_t>(world_size) : bytes;
}

}  // namespace warren::device
