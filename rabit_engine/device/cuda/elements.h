// Combines elements of each type. The same code is compiled for the kernels and, for tests, for the host.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <type_traits>

#include "rabit_engine/device/operation.h"

namespace warren::device {

/// The type in which elements are combined: their own, or float for 8-bit and 16-bit floating-point types.
/// Results are rounded to nearest even: 16-bit floats after all values have been combined (see Partial),
/// 8-bit floats after each operation. For kAverage, the quotient is rounded once more.
template <typename T>
struct Arithmetic {
  using Wide = T;
  static __host__ __device__ Wide Widen(T value) { return value; }
  static __host__ __device__ T Narrow(Wide value) { return value; }
};
template <>
struct Arithmetic<__half> {
  using Wide = float;
  static __host__ __device__ float Widen(__half value) { return __half2float(value); }
  static __host__ __device__ __half Narrow(float value) { return __float2half_rn(value); }
};
template <>
struct Arithmetic<__nv_bfloat16> {
  using Wide = float;
  static __host__ __device__ float Widen(__nv_bfloat16 value) { return __bfloat162float(value); }
  static __host__ __device__ __nv_bfloat16 Narrow(float value) { return __float2bfloat16_rn(value); }
};
// 8-bit floats that are out of range become the greatest finite number, as in NCCL.
template <>
struct Arithmetic<__nv_fp8_e4m3> {
  using Wide = float;
  static __host__ __device__ float Widen(__nv_fp8_e4m3 value) { return static_cast<float>(value); }
  static __host__ __device__ __nv_fp8_e4m3 Narrow(float value) { return __nv_fp8_e4m3(value); }
};
template <>
struct Arithmetic<__nv_fp8_e5m2> {
  using Wide = float;
  static __host__ __device__ float Widen(__nv_fp8_e5m2 value) { return static_cast<float>(value); }
  static __host__ __device__ __nv_fp8_e5m2 Narrow(float value) { return __nv_fp8_e5m2(value); }
};

/// Calls `work` with a value of the C++ type of elements of `type`.
template <typename Work>
auto WithElement(Type type, Work&& work) {
  switch (type) {
    case Type::kInt8:
      return work(std::int8_t{});
    case Type::kUint8:
      return work(std::uint8_t{});
    case Type::kInt32:
      return work(std::int32_t{});
    case Type::kUint32:
      return work(std::uint32_t{});
    case Type::kInt64:
      return work(std::int64_t{});
    case Type::kUint64:
      return work(std::uint64_t{});
    case Type::kFloat16:
      return work(__half{});
    case Type::kFloat32:
      return work(float{});
    case Type::kFloat64:
      return work(double{});
    case Type::kBFloat16:
      return work(__nv_bfloat16{});
    case Type::kFloat8E4M3:
      return work(__nv_fp8_e4m3{});
    default:
      return work(__nv_fp8_e5m2{});
  }
}

/// Calls `work` with a std::integral_constant of the operation.
template <typename Work>
auto WithOperation(ReduceOp operation, Work&& work) {
  switch (operation) {
    case ReduceOp::kSum:
      return work(std::integral_constant<ReduceOp, ReduceOp::kSum>());
    case ReduceOp::kProduct:
      return work(std::integral_constant<ReduceOp, ReduceOp::kProduct>());
    case ReduceOp::kMax:
      return work(std::integral_constant<ReduceOp, ReduceOp::kMax>());
    case ReduceOp::kMin:
      return work(std::integral_constant<ReduceOp, ReduceOp::kMin>());
    default:
      return work(std::integral_constant<ReduceOp, ReduceOp::kAverage>());
  }
}

/// The type of intermediate results: float for 16-bit floats, unless the operation is kMax or kMin; otherwise
/// T.
template <ReduceOp operation, typename T>
using Partial = std::conditional_t<(std::is_same_v<T, __half> ||
                                    std::is_same_v<T, __nv_bfloat16>)&&operation != ReduceOp::kMax &&
                                       operation != ReduceOp::kMin,
                                   float, T>;
template <ReduceOp operation, typename T>
__host__ __device__ inline Partial<operation, T> Open(T value) {
  if constexpr (std::is_same_v<Partial<operation, T>, T>) {
    return value;
  } else {
    return Arithmetic<T>::Widen(value);
  }
}
template <ReduceOp operation, typename T>
__host__ __device__ inline T Close(Partial<operation, T> value) {
  if constexpr (std::is_same_v<Partial<operation, T>, T>) {
    return value;
  } else {
    return Arithmetic<T>::Narrow(value);
  }
}

/// Returns left op right, where left combines the values of the lower ranks; for kAverage, the sum.
template <ReduceOp operation, typename T>
__host__ __device__ inline T Combine(T left, T right) {
  using A = Arithmetic<T>;
  if constexpr (operation == ReduceOp::kMax) {
    return A::Widen(left) < A::Widen(right) ? right : left;
  } else if constexpr (operation == ReduceOp::kMin) {
    return A::Widen(right) < A::Widen(left) ? right : left;
  } else if constexpr (std::is_integral_v<T>) {
    // Wraps around; overflow of signed integers would be undefined.
    using Bits = std::make_unsigned_t<T>;
    using Enough = std::conditional_t<(sizeof(T) < sizeof(unsigned)), unsigned, Bits>;
    const Enough a = static_cast<Bits>(left);
    const Enough b = static_cast<Bits>(right);
    return static_cast<T>(static_cast<Bits>(operation == ReduceOp::kProduct ? a * b : a + b));
  } else if constexpr (operation == ReduceOp::kProduct) {
    return A::Narrow(A::Widen(left) * A::Widen(right));
  } else {
    return A::Narrow(A::Widen(left) + A::Widen(right));
  }
}

/// Completes a combined value: for kAverage, divides by the number of ranks, rounding integers toward zero.
template <ReduceOp operation, typename T>
__host__ __device__ inline T Finish(T value, int ranks) {
  if constexpr (operation == ReduceOp::kAverage) {
    using A = Arithmetic<T>;
    using Wide = typename A::Wide;
    // Wide may be too narrow for the number of ranks.
    using Divisor =
        std::conditional_t<!std::is_integral_v<Wide>, Wide,
                           std::conditional_t<std::is_signed_v<Wide>, std::int64_t, std::uint64_t>>;
    const Divisor quotient = static_cast<Divisor>(A::Widen(value)) / static_cast<Divisor>(ranks);
    return A::Narrow(static_cast<Wide>(quotient));
  } else {
    return value;
  }
}

/// Combines the values of `ranks` ranks in the order of a binary counter (reduce/order.h). `value(rank)` is
/// called once for each rank, in rank order.
template <ReduceOp operation, typename T, typename Value>
__host__ __device__ inline T CombineInOrder(int ranks, Value&& value) {
  constexpr int kLevels = 7;  // enough for kMaxShared ranks
  // The results of subtrees whose right-hand sibling has not been combined yet, by height.
  Partial<operation, T> waiting[kLevels];
  for (int rank = 0; rank < ranks; ++rank) {
    Partial<operation, T> here = Open<operation, T>(value(rank));
    int level = 0;
    for (int bits = rank; (bits & 1) != 0; bits >>= 1, ++level)
      here = Combine<operation>(waiting[level], here);
    waiting[level] = here;
  }
  // The waiting subtrees now correspond to the bits of `ranks`; the lowest bit's subtree holds the highest
  // ranks.
  int level = 0;
  while ((ranks >> level & 1) == 0) ++level;
  Partial<operation, T> result = waiting[level];
  for (++level; level < kLevels; ++level) {
    if ((ranks >> level & 1) != 0) result = Combine<operation>(waiting[level], result);
  }
  return Finish<operation>(Close<operation, T>(result), ranks);
}

/// Combines the values of ranks [begin, min(begin + size, ranks)) in the order of CombineInOrder. `size` is a
/// power of two.
template <ReduceOp operation, typename T, int begin, int size>
__host__ __device__ inline Partial<operation, T> CombineSubtree(int ranks, const T* values) {
  if constexpr (size == 1) {
    return Open<operation, T>(values[begin]);
  } else {
    const Partial<operation, T> left = CombineSubtree<operation, T, begin, size / 2>(ranks, values);
    if (begin + size / 2 >= ranks) return left;
    return Combine<operation>(left, CombineSubtree<operation, T, begin + size / 2, size / 2>(ranks, values));
  }
}

/// Like CombineInOrder, for 1 to `most` ranks whose values are in an array. `most` is a power of two. No loop
/// remains after compilation, so the values can stay in registers.
template <ReduceOp operation, int most, typename T>
__host__ __device__ inline T CombineFew(int ranks, const T (&values)[most]) {
  return Finish<operation>(Close<operation, T>(CombineSubtree<operation, T, 0, most>(ranks, values)), ranks);
}

}  // namespace warren::device
