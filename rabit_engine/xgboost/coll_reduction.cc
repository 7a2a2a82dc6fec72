#include "rabit_engine/xgboost/coll_reduction.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

namespace warren::xgboost {
namespace {

enum Type : int { kF2, kF4, kF8, kF16, kI1, kI2, kI4, kI8, kU1, kU2, kU4, kU8 };
enum Op : int { kMax, kMin, kSum, kBitwiseAnd, kBitwiseOr, kBitwiseXor };

std::optional<DataType> TypeOf(int type) {
  switch (type) {
    case kF4:
      return DataType::kFloat;
    case kF8:
      return DataType::kDouble;
    case kI1:
      return DataType::kChar;
    case kI4:
      return DataType::kInt;
    case kI8:
      return DataType::kLongLong;
    case kU1:
      return DataType::kUChar;
    case kU4:
      return DataType::kUInt;
    case kU8:
      return DataType::kULongLong;
    default:
      return std::nullopt;
  }
}

std::optional<Operation> OperationOf(int operation) {
  switch (operation) {
    case kMax:
      return Operation::kMax;
    case kMin:
      return Operation::kMin;
    case kSum:
      return Operation::kSum;
    case kBitwiseAnd:
      return Operation::kBitAnd;
    case kBitwiseOr:
      return Operation::kBitOr;
    case kBitwiseXor:
      return Operation::kBitXor;
    default:
      return std::nullopt;
  }
}

template <typename Element, typename Combine>
void Run(const void* src, void* dst, std::size_t count, void* /*context*/) {
  for (std::size_t i = 0; i < count; ++i) {  // where the engine has its copies need not be aligned
    Element left;
    Element right;
    char* const to = static_cast<char*>(dst) + i * sizeof(Element);
    std::memcpy(&left, to, sizeof(Element));
    std::memcpy(&right, static_cast<const char*>(src) + i * sizeof(Element), sizeof(Element));
    const auto result = static_cast<Element>(Combine()(left, right));
    std::memcpy(to, &result, sizeof(Element));
  }
}

template <typename Element, typename Combine>
Reduction Custom() {
  return Reduction::Custom(&Run<Element, Combine>, nullptr, sizeof(Element));
}

struct Greatest {
  template <typename Element>
  Element operator()(Element left, Element right) const {
    return std::max(left, right);
  }
};
struct Least {
  template <typename Element>
  Element operator()(Element left, Element right) const {
    return std::min(left, right);
  }
};
template <typename Element>
std::optional<Reduction> CustomOf(int operation) {
  switch (operation) {
    case kMax:
      return Custom<Element, Greatest>();
    case kMin:
      return Custom<Element, Least>();
    case kSum:
      return Custom<Element, std::plus<>>();
    default:
      break;
  }
  if constexpr (std::is_integral_v<Element>) {
    switch (operation) {
      case kBitwiseAnd:
        return Custom<Element, std::bit_and<>>();
      case kBitwiseOr:
        return Custom<Element, std::bit_or<>>();
      case kBitwiseXor:
        return Custom<Element, std::bit_xor<>>();
      default:
        break;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Reduction> ReductionOf(int type, int operation) {
  switch (type) {
    case kF16:
      return CustomOf<long double>(operation);
    case kI2:
      return CustomOf<std::int16_t>(operation);
    case kU2:
      return CustomOf<std::uint16_t>(operation);
    default:
      break;
  }
  const std::optional<DataType> data_type = TypeOf(type);
  const std::optional<Operation> known = OperationOf(operation);
  if (!data_type || !known || !IsDefined(*data_type, *known)) return std::nullopt;
  return Reduction::Typed(*data_type, *known);
}

}  // namespace warren::xgboost
