#include "rabit_engine/xgboost/coll_reduction.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

#include "rabit_engine/xgboost/codes.h"

namespace warren::xgboost {
namespace {

/// The engine's types by XGBoost's codes; nullopt if the engine has no such type, and for half precision,
/// which XGBoost itself must reduce.
constexpr std::array<std::optional<DataType>, 12> kTypes = {
    std::nullopt,     DataType::kFloat, DataType::kDouble, std::nullopt,
    DataType::kChar,  std::nullopt,     DataType::kInt,    DataType::kLongLong,
    DataType::kUChar, std::nullopt,     DataType::kUInt,   DataType::kULongLong};
constexpr std::array<ReduceOp, 6> kOperations = {ReduceOp::kMax,    ReduceOp::kMin,   ReduceOp::kSum,
                                                 ReduceOp::kBitAnd, ReduceOp::kBitOr, ReduceOp::kBitXor};

template <typename Codes>
bool Has(const Codes& codes, int code) {
  return code >= 0 && static_cast<std::size_t>(code) < codes.size();
}

template <typename Element, typename Combine>
void Run(const void* src, void* dst, std::size_t count, void* /*context*/) {
  for (std::size_t i = 0; i < count; ++i) {  // elements need not be aligned
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
  if (!Has(kTypes, type) || !Has(kOperations, operation)) return std::nullopt;
  const std::optional<DataType> data_type = kTypes[type];
  if (!data_type || !IsDefined(*data_type, kOperations[operation])) return std::nullopt;
  return Reduction::Typed(*data_type, kOperations[operation]);
}

}  // namespace warren::xgboost
