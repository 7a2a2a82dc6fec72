// The kernels, written once over vectors of kVectorBytes. Each kernels_<instruction set>.cc includes this
// file and is compiled for that instruction set.
//
// Everything is in an unnamed namespace, and no library function is called except memcpy: if an inline
// library function were compiled here with AVX instructions, the linker might keep that copy for the whole
// program, which would then crash on a CPU without AVX.
//
// All tables produce the same bits, for these reasons:
// - sums and products of integers are computed in unsigned types, which wrap;
// - max and min compare and select, so that NaNs and signed zeros behave like the `?:` in reduction.h;
// - a sum or product of two NaNs is the left one, made quiet. The hardware does this, but compilers swap the
//   operands of + and *, so Add and Multiply fix the operands' order;
// - 16-bit floats are combined as floats, and the stored result is rounded once, for any number of inputs;
//   a NaN keeps the upper bits of its payload. All operations on binary16 make a NaN quiet, because widening
//   does (F16C); max and min of bfloat16 return one operand with unchanged bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "rabit_engine/reduce/kernels.h"

#ifndef WARREN_VECTOR_BYTES
#error "define WARREN_VECTOR_BYTES before including kernels_impl.h"
#endif

namespace warren {
namespace {

constexpr std::size_t kVectorBytes = WARREN_VECTOR_BYTES;

template <typename T, std::size_t bytes = kVectorBytes>
struct VectorOf {
  typedef T Type __attribute__((vector_size(bytes)));
};
template <typename T>
using Vector = typename VectorOf<T>::Type;
using Floats = Vector<float>;
using Words = Vector<std::uint32_t>;
using Integers = Vector<std::int32_t>;
using HalfVector = VectorOf<std::uint16_t, kVectorBytes / 2>::Type;

template <typename To, typename From>
To Bits(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

template <typename V>
V LoadVector(const std::byte* from) {
  V vector;
  std::memcpy(&vector, from, sizeof(vector));
  return vector;
}

/// Returns a vector with all bits set in the lanes that hold a NaN, and zero in the others.
template <typename V>
auto IsNan(V value) {
  return value != value;  // NOLINT(misc-redundant-expression): NaN alone differs from itself
}

// ------------------------------------------------------------------------------- sums and products of floats

#if defined(__x86_64__)
#if defined(__AVX__)
#if defined(__AVX512F__)
#define WARREN_ENCODING ""
#else
// Without this, the assembler of newer Clangs (22, but not 14) swaps commutative operands to save a byte.
#define WARREN_ENCODING "%{vex3%} "
#endif
#define WARREN_PINNED(name, type, instruction)                                                 \
  inline Vector<type> name(Vector<type> left, Vector<type> right) {                            \
    Vector<type> result;                                                                       \
    asm(WARREN_ENCODING "v" instruction " %2, %1, %0" : "=v"(result) : "v"(left), "v"(right)); \
    return result;                                                                             \
  }
#else
#define WARREN_PINNED(name, type, instruction)                      \
  inline Vector<type> name(Vector<type> left, Vector<type> right) { \
    asm(instruction " %1, %0" : "+x"(left) : "x"(right));           \
    return left;                                                    \
  }
#endif
WARREN_PINNED(Add, float, "addps")
WARREN_PINNED(Add, double, "addpd")
WARREN_PINNED(Multiply, float, "mulps")
WARREN_PINNED(Multiply, double, "mulpd")
#undef WARREN_PINNED
#undef WARREN_ENCODING
#else
/// Returns `value` with each NaN made quiet. The other lanes are unspecified, and callers do not use them.
inline Floats Quiet(Floats value) {
  return Bits<Floats>(Bits<Words>(value) | 0x0040'0000u);
}
inline Vector<double> Quiet(Vector<double> value) {
  return Bits<Vector<double>>(Bits<Vector<std::uint64_t>>(value) | 0x0008'0000'0000'0000u);
}
template <typename V>
V Add(V left, V right) {
  return IsNan(left) ? Quiet(left) : left + right;
}
template <typename V>
V Multiply(V left, V right) {
  return IsNan(left) ? Quiet(left) : left * right;
}
#endif

// ------------------------------------------------------------------------------------------------ operations

template <typename T>
constexpr bool kIsFloat = false;
template <>
constexpr bool kIsFloat<Floats> = true;
template <>
constexpr bool kIsFloat<Vector<double>> = true;

// kExact: the result is one of the operands or a bitwise combination of them, so there is nothing to round.
struct Max {
  static constexpr bool kExact = true;
  template <typename V>
  static V Apply(V left, V right) {
    return left < right ? right : left;
  }
};
struct Min {
  static constexpr bool kExact = true;
  template <typename V>
  static V Apply(V left, V right) {
    return right < left ? right : left;
  }
};
struct Sum {
  static constexpr bool kExact = false;
  template <typename V>
  static V Apply(V left, V right) {
    if constexpr (kIsFloat<V>) {
      return Add(left, right);
    } else {
      return left + right;
    }
  }
};
struct Product {
  static constexpr bool kExact = false;
  template <typename V>
  static V Apply(V left, V right) {
    if constexpr (kIsFloat<V>) {
      return Multiply(left, right);
    } else {
      return left * right;
    }
  }
};
struct BitOr {
  static constexpr bool kExact = true;
  template <typename V>
  static V Apply(V left, V right) {
    return left | right;
  }
};
struct BitAnd {
  static constexpr bool kExact = true;
  template <typename V>
  static V Apply(V left, V right) {
    return left & right;
  }
};
struct BitXor {
  static constexpr bool kExact = true;
  template <typename V>
  static V Apply(V left, V right) {
    return left ^ right;
  }
};

// ------------------------------------------------------------------------------------- elements in registers

/// How a kernel holds a vector of elements in registers. The result of Combine<Op> may have more bits than an
/// element; Store<Op> rounds it.
template <typename T>
struct Elements {
  // The number of bytes that one step of a kernel reads from each input, and the number that it writes.
  static constexpr std::size_t kInBytes = kVectorBytes;
  static constexpr std::size_t kOutBytes = kVectorBytes;
  using Register = Vector<T>;
  static Register Load(const std::byte* from) { return LoadVector<Register>(from); }
  template <typename Op>
  static Register Combine(Register left, Register right) {
    return Op::Apply(left, right);
  }
  template <typename Op>
  static void Store(std::byte* to, Register value) {
    std::memcpy(to, &value, sizeof(value));
  }
};

/// A vector of 16-bit floats, widened. The format decides which elements are in `first` and which in
/// `second`.
struct Widened {
  Floats first;
  Floats second;
};

/// Spread zero-extends 16-bit values to words. Pack is its inverse; the upper halves of the words must be 0.
#if WARREN_VECTOR_BYTES == 64
inline Words Spread(HalfVector halves) {
  return Bits<Words>(_mm512_maskz_cvtepu16_epi32(0xffff, Bits<__m256i>(halves)));
}
inline HalfVector Pack(Words words) {
  return Bits<HalfVector>(_mm512_maskz_cvtepi32_epi16(0xffff, Bits<__m512i>(words)));
}
#elif WARREN_VECTOR_BYTES == 32
// (GCC 12 generates twice as many instructions for __builtin_convertvector.)
inline Words Spread(HalfVector halves) {
  return Bits<Words>(_mm256_cvtepu16_epi32(Bits<__m128i>(halves)));
}
inline HalfVector Pack(Words words) {
  const __m256i twice = _mm256_packus_epi32(Bits<__m256i>(words), Bits<__m256i>(words));
  return Bits<HalfVector>(_mm256_castsi256_si128(_mm256_permute4x64_epi64(twice, 0b1000)));
}
#else
inline Words Spread(HalfVector halves) {
  return __builtin_convertvector(halves, Words);
}
inline HalfVector Pack(Words words) {
  return __builtin_convertvector(words, HalfVector);
}
#endif

struct Float16 {
#if WARREN_VECTOR_BYTES == 64
  // These are masked intrinsics, with a mask of all ones: GCC 12 warns about the unmasked ones in its own
  // header (GCC bug 105593).
  static HalfVector Narrow(Floats value) {
    return Bits<HalfVector>(
        _mm512_maskz_cvtps_ph(0xffff, Bits<__m512>(value), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  static Floats Widen(HalfVector half) {
    return Bits<Floats>(_mm512_maskz_cvtph_ps(0xffff, Bits<__m256i>(half)));
  }
#elif WARREN_VECTOR_BYTES == 32
  static HalfVector Narrow(Floats value) {
    return Bits<HalfVector>(
        _mm256_cvtps_ph(Bits<__m256>(value), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  static Floats Widen(HalfVector half) {
    return Bits<Floats>(_mm256_cvtph_ps(Bits<__m128i>(half)));
  }
#elif defined(__aarch64__)
  static HalfVector Narrow(Floats value) {
    return Bits<HalfVector>(vcvt_f16_f32(Bits<float32x4_t>(value)));
  }
  static Floats Widen(HalfVector half) {
    return Bits<Floats>(vcvt_f32_f16(Bits<float16x4_t>(half)));
  }
#endif

#if WARREN_VECTOR_BYTES > 16 || defined(__aarch64__)
  static HalfVector NarrowInOrder(Floats value) {
    return Narrow(value);
  }
  static Floats WidenInOrder(HalfVector half) {
    return Widen(half);
  }
  static Widened Load(const std::byte* from) {
    return {Widen(LoadVector<HalfVector>(from)), Widen(LoadVector<HalfVector>(from + sizeof(HalfVector)))};
  }
  static void Store(std::byte* to, Widened value) {
    const HalfVector first = Narrow(value.first);
    const HalfVector second = Narrow(value.second);
    std::memcpy(to, &first, sizeof(first));
    std::memcpy(to + sizeof(first), &second, sizeof(second));
  }
#else
  // Magnitudes are compared as signed integers: they have no sign bit, and a signed comparison takes one
  // instruction on every CPU.
  /// Returns the bits of the result in the lower half of each word.
  static Words Narrow(Floats value) {
    const Words sign = (Bits<Words>(value) >> 16) & 0x8000u;
    const Words bits = Bits<Words>(value) & 0x7fff'ffffu;
    const Integers magnitude = Bits<Integers>(bits);
    // The exponent's bias changes from 127 to 15; 13 bits of the fraction are rounded off, ties to even.
    const Integers normal = Bits<Integers>((bits - ((112u << 23) - 0xfffu) + ((bits >> 13) & 1u)) >> 13);
    // Near 0.5 floats are 2^-24 apart, like the denormals of binary16, so the addition rounds.
    const Integers denormal = Bits<Integers>(Bits<Floats>(magnitude) + 0.5f) - 0x3f00'0000;
    const Integers nan = 0x7e00 | ((magnitude >> 13) & 0x3ff);
    const Integers infinity = Integers{} + 0x7c00;
    Integers half = magnitude < 0x3880'0000 ? denormal : normal;
    half = magnitude >= 0x4780'0000 ? infinity : half;
    half = magnitude > 0x7f80'0000 ? nan : half;
    return Bits<Words>(half) | sign;
  }
  static Floats Widen(Words half) {
    const Words sign = (half & 0x8000u) << 16;
    const Integers magnitude = Bits<Integers>(half & 0x7fffu);
    const Integers normal = (magnitude << 13) + (112 << 23);
    const Integers denormal = Bits<Integers>(__builtin_convertvector(magnitude, Floats) * 0x1p-24f);
    Integers bits = magnitude < 0x400 ? denormal : normal;
    bits += (magnitude >= 0x7c00) & (112 << 23);
    bits |= (magnitude > 0x7c00) & 0x0040'0000;
    return Bits<Floats>(Bits<Words>(bits) | sign);
  }
  static HalfVector NarrowInOrder(Floats value) {
    return Pack(Narrow(value));
  }
  static Floats WidenInOrder(HalfVector half) {
    return Widen(Spread(half));
  }
  // Widens even and odd elements separately, because shuffles would cost more.
  static Widened Load(const std::byte* from) {
    const Words words = LoadVector<Words>(from);
    return {Widen(words & 0xffffu), Widen(words >> 16)};
  }
  static void Store(std::byte* to, Widened value) {
    const Words words = Narrow(value.first) | Narrow(value.second) << 16;
    std::memcpy(to, &words, sizeof(words));
  }
#endif

  static void StoreExact(std::byte* to, Widened value) {
    Store(to, value);
  }
};

struct BFloat16 {
  /// Returns the bits of the result in the upper half of each word; the lower half is unspecified.
  /// (AVX512_BF16 has an instruction for this, but it treats denormals as zero, which changes the bits.)
  static Words RoundUpperHalf(Floats value) {
    const Words bits = Bits<Words>(value);
    const Words rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
    return IsNan(value) ? bits | 0x0040'0000u : rounded;
  }
  // Loads the even and the odd elements separately, which needs no shuffles.
  static Widened Load(const std::byte* from) {
    const Words words = LoadVector<Words>(from);
    return {Bits<Floats>(words << 16), Bits<Floats>(words & 0xffff'0000u)};
  }
  static HalfVector NarrowInOrder(Floats value) { return Pack(RoundUpperHalf(value) >> 16); }
  static Floats WidenInOrder(HalfVector half) { return Bits<Floats>(Spread(half) << 16); }
  static void StoreUpperHalves(std::byte* to, Words first, Words second) {
    const Words words = first >> 16 | (second & 0xffff'0000u);
    std::memcpy(to, &words, sizeof(words));
  }
  static void Store(std::byte* to, Widened value) {
    StoreUpperHalves(to, RoundUpperHalf(value.first), RoundUpperHalf(value.second));
  }
  static void StoreExact(std::byte* to, Widened value) {
    StoreUpperHalves(to, Bits<Words>(value.first), Bits<Words>(value.second));
  }
};

template <typename Format>
struct SixteenBits {
  static constexpr std::size_t kInBytes = kVectorBytes;
  static constexpr std::size_t kOutBytes = kVectorBytes;
  using Register = Widened;
  static Register Load(const std::byte* from) { return Format::Load(from); }
  template <typename Op>
  static Register Combine(Register left, Register right) {
    return {Op::Apply(left.first, right.first), Op::Apply(left.second, right.second)};
  }
  template <typename Op>
  static void Store(std::byte* to, Register value) {
    if constexpr (Op::kExact) {
      Format::StoreExact(to, value);
    } else {
      Format::Store(to, value);
    }
  }
};
template <>
struct Elements<Float16> : SixteenBits<Float16> {};
template <>
struct Elements<BFloat16> : SixteenBits<BFloat16> {};

/// 16-bit floats whose combination is stored as floats.
template <typename Format>
struct FromSixteenBits : SixteenBits<Format> {
  static constexpr std::size_t kOutBytes = 2 * kVectorBytes;
  static Widened Load(const std::byte* from) {
    return {Format::WidenInOrder(LoadVector<HalfVector>(from)),
            Format::WidenInOrder(LoadVector<HalfVector>(from + sizeof(HalfVector)))};
  }
  template <typename Op>
  static void Store(std::byte* to, Widened value) {
    std::memcpy(to, &value.first, sizeof(value.first));
    std::memcpy(to + sizeof(value.first), &value.second, sizeof(value.second));
  }
};

/// Floats whose combination is stored as 16-bit floats.
template <typename Format>
struct ToSixteenBits : SixteenBits<Format> {
  static constexpr std::size_t kInBytes = 2 * kVectorBytes;
  static Widened Load(const std::byte* from) {
    return {LoadVector<Floats>(from), LoadVector<Floats>(from + sizeof(Floats))};
  }
  template <typename Op>
  static void Store(std::byte* to, Widened value) {
    const HalfVector first = Format::NarrowInOrder(value.first);
    const HalfVector second = Format::NarrowInOrder(value.second);
    std::memcpy(to, &first, sizeof(first));
    std::memcpy(to + sizeof(first), &second, sizeof(second));
  }
};

// --------------------------------------------------------------------------------------------------- kernels

/// Returns the number of inputs in the root's left subtree, if `inputs` inputs are combined in the engine's
/// order.
constexpr int LeftLeaves(int inputs) {
  int width = 1;
  while (2 * width < inputs) width *= 2;
  return width;
}

/// Combines the vectors at offset `at` of the inputs first[0], first[1], ... in the engine's order, entirely
/// in registers.
template <typename Kind, typename Op, int inputs>
__attribute__((always_inline)) inline typename Kind::Register Tree(const std::byte* const* first,
                                                                   std::size_t at) {
  if constexpr (inputs == 1) {
    return Kind::Load(first[0] + at);
  } else {
    constexpr int kLeft = LeftLeaves(inputs);
    return Kind::template Combine<Op>(Tree<Kind, Op, kLeft>(first, at),
                                      Tree<Kind, Op, inputs - kLeft>(first + kLeft, at));
  }
}

template <typename Kind, typename Op, int inputs>
void Fused(void* out_pointer, const void* const* input_pointers, std::size_t bytes) {
  using Register = typename Kind::Register;
  constexpr std::size_t kIn = Kind::kInBytes;
  constexpr std::size_t kOut = Kind::kOutBytes;
  // Unrolled enough to hide the cost of the loop itself.
  constexpr int kUnroll = inputs <= 2 ? 4 : inputs <= 4 ? 2 : 1;
  auto* const out = static_cast<std::byte*>(out_pointer);
  const std::byte* input[inputs];
  for (int i = 0; i < inputs; ++i) input[i] = static_cast<const std::byte*>(input_pointers[i]);

  std::size_t at = 0;
  for (; bytes - at >= kUnroll * kIn; at += kUnroll * kIn) {
    Register result[kUnroll];
    for (int u = 0; u < kUnroll; ++u) result[u] = Tree<Kind, Op, inputs>(input, at + u * kIn);
    for (int u = 0; u < kUnroll; ++u) Kind::template Store<Op>(out + at * kOut / kIn + u * kOut, result[u]);
  }
  if constexpr (kUnroll > 1) {
    for (; bytes - at >= kIn; at += kIn) {
      Kind::template Store<Op>(out + at * kOut / kIn, Tree<Kind, Op, inputs>(input, at));
    }
  }
  if (const std::size_t rest = bytes - at; rest > 0) {
    // Uses the same instructions for the last few elements, so that their bits are the same, too.
    std::byte padded[inputs][kIn] = {};
    const std::byte* copies[inputs];
    for (int i = 0; i < inputs; ++i) {
      std::memcpy(padded[i], input[i] + at, rest);
      copies[i] = padded[i];
    }
    std::byte result[kOut];
    Kind::template Store<Op>(result, Tree<Kind, Op, inputs>(copies, 0));
    std::memcpy(out + at * kOut / kIn, result, rest * kOut / kIn);
  }
}

// ----------------------------------------------------------------------------------------------------- table

template <typename Kind, typename Op, const WideKernels* wide = nullptr>
constexpr KernelSet kSet{&Fused<Kind, Op, 2>, &Fused<Kind, Op, 3>, &Fused<Kind, Op, 4>, &Fused<Kind, Op, 8>,
                         wide};

template <typename Format, typename Op>
constexpr WideKernels kWide{&Fused<FromSixteenBits<Format>, Op, 1>, kSet<FromSixteenBits<Format>, Op>,
                            kSet<Elements<float>, Op>, &Fused<ToSixteenBits<Format>, Op, 1>};

/// Sums and products use `Arithmetic`.
template <typename T, typename Arithmetic = T>
constexpr void FillNumbers(KernelSet* sets) {
  sets[static_cast<int>(ReduceOp::kMax)] = kSet<Elements<T>, Max>;
  sets[static_cast<int>(ReduceOp::kMin)] = kSet<Elements<T>, Min>;
  sets[static_cast<int>(ReduceOp::kSum)] = kSet<Elements<Arithmetic>, Sum>;
  sets[static_cast<int>(ReduceOp::kProduct)] = kSet<Elements<Arithmetic>, Product>;
}

/// Sums and products use the unsigned type of the same width, and the bitwise operations 64-bit words.
template <typename T, typename Unsigned>
constexpr void FillIntegers(KernelSet* sets) {
  FillNumbers<T, Unsigned>(sets);
  sets[static_cast<int>(ReduceOp::kBitOr)] = kSet<Elements<std::uint64_t>, BitOr>;
  sets[static_cast<int>(ReduceOp::kBitAnd)] = kSet<Elements<std::uint64_t>, BitAnd>;
  sets[static_cast<int>(ReduceOp::kBitXor)] = kSet<Elements<std::uint64_t>, BitXor>;
}

template <typename Format>
constexpr void FillSixteenBits(KernelSet* sets) {
  FillNumbers<Format>(sets);
  sets[static_cast<int>(ReduceOp::kSum)] = kSet<Elements<Format>, Sum, &kWide<Format, Sum>>;
  sets[static_cast<int>(ReduceOp::kProduct)] = kSet<Elements<Format>, Product, &kWide<Format, Product>>;
}

constexpr KernelTable MakeTable(const char* name) {
  KernelTable table{name, {}};
  const auto sets = [&table](DataType type) { return table.sets[static_cast<int>(type)]; };
  FillIntegers<signed char, unsigned char>(sets(DataType::kChar));
  FillIntegers<unsigned char, unsigned char>(sets(DataType::kUChar));
  FillIntegers<std::int32_t, std::uint32_t>(sets(DataType::kInt));
  FillIntegers<std::uint32_t, std::uint32_t>(sets(DataType::kUInt));
  for (const DataType type : {DataType::kLong, DataType::kLongLong}) {
    FillIntegers<std::int64_t, std::uint64_t>(sets(type));
  }
  for (const DataType type : {DataType::kULong, DataType::kULongLong}) {
    FillIntegers<std::uint64_t, std::uint64_t>(sets(type));
  }
  FillNumbers<float>(sets(DataType::kFloat));
  FillNumbers<double>(sets(DataType::kDouble));
  FillSixteenBits<Float16>(sets(DataType::kFloat16));
  FillSixteenBits<BFloat16>(sets(DataType::kBFloat16));
  return table;
}

}  // namespace
}  // namespace warren
