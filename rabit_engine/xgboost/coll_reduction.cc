#include "rabit_engine/xgboost/coll_reduction.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

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
/// `Combine...`: the operations on this type by XGBoost's codes.
template <typename Element, typename... Combine>
std::optional<Reduction> CustomOf(int operation) {
  constexpr std::array<Reduction::Function, sizeof...(Combine)> kFunctions{&Run<Element, Combine>...};
  if (!Has(kFunctions, operation)) return std::nullopt;
  return Reduction::Custom(kFunctions[operation], nullptr, sizeof(Element));
}
template <typename Element>
std::optional<Reduction> CustomOfIntegers(int operation) {
  return CustomOf<Element, Greatest, Least, std::plus<>, std::bit_and<>, std::bit_or<>, std::bit_xor<>>(
      operation);
}

}  // namespace

std::optional<Reduction> ReductionOf(int type, int operation) {
  switch (type) {
    case kF16:
      return CustomOf<long double, Greatest, Least, std::plus<>>(operation);
    case kI2:
      return CustomOfIntegers<std::int16_t>(operation);
    case kU2:
      return CustomOfIntegers<std::uint16_t>(operation);
    default:
      break;
  }
  if (!Has(kTypes, type) || !Has(kOperations, operation)) return std::nullopt;
  const std::optional<DataType> data_type = kTypes[type];
  if (!data_type || !IsDefined(*data_type, kOperations[operation])) return std::nullopt;
  return Reduction::Typed(*data_type, kOperations[operation]);
}

}  // namespace warren::xgboost
