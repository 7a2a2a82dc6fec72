// Reductions: a built-in operation on a built-in element type, or a caller's function. Kernels exist for
// several instruction sets, selected once per process according to the CPU (kernels.h); all of them produce
// the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace warren {

struct KernelSet;    // kernels.h
struct KernelTable;  // kernels.h

/// Element types. 0 to 9 are rabit's codes (rabit/internal/engine.h); the rest are this engine's additions.
enum class DataType : std::uint8_t {
  kChar = 0,
  kUChar = 1,
  kInt = 2,
  kUInt = 3,
  kLong = 4,
  kULong = 5,
  kFloat = 6,
  kDouble = 7,
  kLongLong = 8,
  kULongLong = 9,
  kFloat16 = 10,   ///< IEEE 754 binary16
  kBFloat16 = 11,  ///< upper half of a float
};
inline constexpr int kNumDataTypes = 12;

/// Operations. 0 to 3 are rabit's codes; the rest are this engine's additions. The bitwise ones take integers
/// only.
enum class ReduceOp : std::uint8_t {
  kMax = 0,
  kMin = 1,
  kSum = 2,
  kBitOr = 3,
  kProduct = 4,
  kBitAnd = 5,
  kBitXor = 6,
};
inline constexpr int kNumReduceOps = 7;

std::size_t SizeOf(DataType type);
std::string_view Name(DataType type);
std::string_view Name(ReduceOp operation);
/// Whether the operation is defined for the type (bitwise operations on floating point are not).
bool IsDefined(DataType type, ReduceOp operation);

/// A reduction. A small value, cheap to copy; safe to use from several threads.
///
/// The order of operands is part of the contract: `left` always comes from lower ranks than `right`. Max is
/// `left < right ? right : left`, min is `right < left ? right : left`, as in rabit, and a sum or product of
/// two NaNs is the left one made quiet, so that the bits are the same on every rank even with NaN and signed
/// zeros. (The bits of a NaN that results from an invalid operation, such as infinity - infinity, depend on
/// the processor.) Integers wrap.
///
/// Sums and products of 16-bit floats are computed in float: the operands are widened and combined in the
/// engine's order, and the result is rounded to nearest even, once. Max and min return one of the operands
/// (for binary16, with NaN made quiet).
class Reduction {
 public:
  /// Computes dst[i] = dst[i] op src[i] for i in [0, count), where dst comes from lower ranks than src.
  using Function = void (*)(const void* src, void* dst, std::size_t count, void* context);

  /// Throws Misuse if the operation is not defined for the type.
  static Reduction Typed(DataType type, ReduceOp operation);
  /// Like Typed above, with the kernels of one instruction set: for tests and benchmarks.
  static Reduction Typed(DataType type, ReduceOp operation, const KernelTable& kernels);
  /// `function` is called with pieces of any length, on the thread that runs the collective. Throws Misuse if
  /// `function` is null or `element_bytes` is 0.
  static Reduction Custom(Function function, void* context, std::size_t element_bytes);

  std::size_t element_bytes() const { return element_bytes_; }
  /// Whether the result may depend on the order of the operands: true for custom functions and floating point
  /// (the order affects even max and min, of NaNs and signed zeros), false for built-in operations on
  /// integers.
  bool order_matters() const { return order_matters_; }
  bool is_custom() const { return function_ != nullptr; }
  /// Whether results are rounded: true for sums and products of 16-bit floats. Combining rounded results
  /// further would round more than once; to avoid this, combine floats with Wide().
  bool rounds() const { return rounds_; }
  /// For typed reductions only.
  DataType type() const { return type_; }
  ReduceOp operation() const { return operation_; }

  /// Computes out[i] = left[i] op right[i]. `out` may be `left` or `right`; otherwise the ranges must not
  /// overlap. Pointers need not be aligned (but custom functions receive the caller's pointers: align them if
  /// necessary).
  void Combine(void* out, const void* left, const void* right, std::size_t count) const;

  /// Combines inputs[0], inputs[1], ... in the engine's order (order.h), as if they were ranks 0, 1, ... of
  /// inputs.size() ranks, reading every input once. `out` may be one of the inputs. Throws Misuse if there
  /// are no inputs.
  void CombineAll(void* out, std::span<const void* const> inputs, std::size_t count) const;

  /// The same operation on floats; for reductions that round.
  Reduction Wide() const;
  /// Convert elements to floats, and back with rounding to nearest even, for reductions that round. Not in
  /// place; no alignment needed.
  void Widen(void* floats, const void* elements, std::size_t count) const;
  void Narrow(void* elements, const void* floats, std::size_t count) const;

 private:
  Reduction() = default;

  const KernelSet* kernels_ = nullptr;
  Function function_ = nullptr;
  void* context_ = nullptr;
  std::size_t element_bytes_ = 1;
  DataType type_ = DataType::kChar;
  ReduceOp operation_ = ReduceOp::kSum;
  bool order_matters_ = true;
  bool rounds_ = false;
};

}  // namespace warren
