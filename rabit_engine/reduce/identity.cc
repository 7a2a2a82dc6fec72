#include "rabit_engine/reduce/identity.h"

#include <cstdint>
#include <cstring>
#include <limits>

namespace warren {
namespace {

template <typename T>
void Fill(void* buffer, std::size_t count, T value) {
  auto* bytes = static_cast<std::byte*>(buffer);
  for (std::size_t i = 0; i < count; ++i) std::memcpy(bytes + i * sizeof(T), &value, sizeof(T));
}

template <typename T>
void FillIntegers(void* buffer, std::size_t count, ReduceOp operation) {
  switch (operation) {
    case ReduceOp::kMax:
      return Fill(buffer, count, std::numeric_limits<T>::min());
    case ReduceOp::kMin:
      return Fill(buffer, count, std::numeric_limits<T>::max());
    case ReduceOp::kProduct:
      return Fill(buffer, count, T{1});
    case ReduceOp::kBitAnd:
      return Fill(buffer, count, static_cast<T>(~T{0}));
    default:
      return Fill(buffer, count, T{0});
  }
}

/// The identity elements of one floating-point type. The identity of a sum is -0, because adding +0 would
/// turn -0 into +0.
template <typename T>
struct Floats {
  T negative_zero, one, infinity, negative_infinity;
};
constexpr Floats<float> kFloats{-0.0F, 1, std::numeric_limits<float>::infinity(),
                                -std::numeric_limits<float>::infinity()};
constexpr Floats<double> kDoubles{-0.0, 1, std::numeric_limits<double>::infinity(),
                                  -std::numeric_limits<double>::infinity()};
constexpr Floats<std::uint16_t> kFloat16s{0x8000, 0x3c00, 0x7c00, 0xfc00};
constexpr Floats<std::uint16_t> kBFloat16s{0x8000, 0x3f80, 0x7f80, 0xff80};

template <typename T>
void FillFloats(void* buffer, std::size_t count, ReduceOp operation, const Floats<T>& values) {
  switch (operation) {
    case ReduceOp::kMax:
      return Fill(buffer, count, values.negative_infinity);
    case ReduceOp::kMin:
      return Fill(buffer, count, values.infinity);
    case ReduceOp::kProduct:
      return Fill(buffer, count, values.one);
    default:
      return Fill(buffer, count, values.negative_zero);
  }
}

}  // namespace

void FillWithIdentity(void* buffer, std::size_t count, DataType type, ReduceOp operation) {
  switch (type) {
    case DataType::kChar:
      return FillIntegers<std::int8_t>(buffer, count, operation);
    case DataType::kUChar:
      return FillIntegers<std::uint8_t>(buffer, count, operation);
    case DataType::kInt:
      return FillIntegers<std::int32_t>(buffer, count, operation);
    case DataType::kUInt:
      return FillIntegers<std::uint32_t>(buffer, count, operation);
    case DataType::kLong:
    case DataType::kLongLong:
      return FillIntegers<std::int64_t>(buffer, count, operation);
    case DataType::kULong:
    case DataType::kULongLong:
      return FillIntegers<std::uint64_t>(buffer, count, operation);
    case DataType::kFloat:
      return FillFloats(buffer, count, operation, kFloats);
    case DataType::kDouble:
      return FillFloats(buffer, count, operation, kDoubles);
    case DataType::kFloat16:
      return FillFloats(buffer, count, operation, kFloat16s);
    case DataType::kBFloat16:
      return FillFloats(buffer, count, operation, kBFloat16s);
  }
}

}  // namespace warren
