// The kernels' operations on elements, compiled for the host, give the same bits as the engine's own
// reductions.
#include "rabit_engine/device/cuda/elements.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <type_traits>
#include <vector>

#include "rabit_engine/device/host_reduction.h"

namespace warren::device {
namespace {

template <typename T>
class ElementsTest : public testing::Test {};

template <typename T>
constexpr Type CodeOf() {
  if constexpr (std::is_same_v<T, std::int8_t>) return Type::kInt8;
  if constexpr (std::is_same_v<T, std::uint8_t>) return Type::kUint8;
  if constexpr (std::is_same_v<T, std::int32_t>) return Type::kInt32;
  if constexpr (std::is_same_v<T, std::uint32_t>) return Type::kUint32;
  if constexpr (std::is_same_v<T, std::int64_t>) return Type::kInt64;
  if constexpr (std::is_same_v<T, std::uint64_t>) return Type::kUint64;
  if constexpr (std::is_same_v<T, __half>) return Type::kFloat16;
  if constexpr (std::is_same_v<T, __nv_bfloat16>) return Type::kBFloat16;
  if constexpr (std::is_same_v<T, float>) return Type::kFloat32;
  if constexpr (std::is_same_v<T, double>) return Type::kFloat64;
  if constexpr (std::is_same_v<T, __nv_fp8_e4m3>) return Type::kFloat8E4M3;
  return Type::kFloat8E5M2;
}

using AllTypes =
    testing::Types<std::int8_t, std::uint8_t, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t,
                   __half, __nv_bfloat16, float, double, __nv_fp8_e4m3, __nv_fp8_e5m2>;
TYPED_TEST_SUITE(ElementsTest, AllTypes);

/// A number with random bits. NaNs are excluded, as they may differ in sign and payload.
template <typename T>
T AnyNumber(std::mt19937_64& random) {
  while (true) {
    const std::uint64_t bits = random();
    T value;
    std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
    const auto wide = static_cast<double>(Arithmetic<T>::Widen(value));
    // Large floats are excluded, too, so that few sums and products become infinite: infinity minus infinity
    // is a NaN. (On infinite results, the engine's and CUDA's float8 agree.)
    if (std::isfinite(wide) && (std::is_integral_v<T> || std::fabs(wide) < 100)) return value;
  }
}

template <ReduceOp operation, typename T>
void Compare() {
  std::mt19937_64 random(static_cast<unsigned>(operation) + 1);
  for (int ranks = 1; ranks <= 64; ranks = ranks < 9 ? ranks + 1 : ranks * 2 - 3) {
    for (int repetition = 0; repetition < 200; ++repetition) {
      std::vector<T> values;
      for (int rank = 0; rank < ranks; ++rank) values.push_back(AnyNumber<T>(random));
      const T on_device = CombineInOrder<operation, T>(
          ranks, [&](int rank) { return values[static_cast<std::size_t>(rank)]; });
      const auto expect_few = [&]<int most>(std::integral_constant<int, most>) {
        if (ranks > most) return;
        T few[most] = {};
        std::copy(values.begin(), values.end(), few);
        const T combined = CombineFew<operation>(ranks, few);
        ASSERT_EQ(std::memcmp(&combined, &on_device, sizeof(T)), 0) << ranks << " of " << most << " ranks";
      };
      expect_few(std::integral_constant<int, 2>());
      expect_few(std::integral_constant<int, 4>());
      expect_few(std::integral_constant<int, 8>());
      std::vector<const void*> inputs;
      for (const T& value : values) inputs.push_back(&value);
      T on_host;
      HostReduction(CodeOf<T>(), operation).CombineAll(&on_host, inputs, 1);
      if (operation == ReduceOp::kAverage) Divide(CodeOf<T>(), &on_host, 1, ranks);
      if (std::isnan(static_cast<double>(Arithmetic<T>::Widen(on_host)))) continue;
      ASSERT_EQ(std::memcmp(&on_device, &on_host, sizeof(T)), 0)
          << Name(CodeOf<T>()) << ' ' << Name(operation) << " of " << ranks
          << " ranks: " << static_cast<double>(Arithmetic<T>::Widen(on_device)) << " and "
          << static_cast<double>(Arithmetic<T>::Widen(on_host));
    }
  }
}

TYPED_TEST(ElementsTest, HaveTheBitsOfTheEngine) {
  Compare<ReduceOp::kSum, TypeParam>();
  Compare<ReduceOp::kProduct, TypeParam>();
  Compare<ReduceOp::kMax, TypeParam>();
  Compare<ReduceOp::kMin, TypeParam>();
  Compare<ReduceOp::kAverage, TypeParam>();
}

}  // namespace
}  // namespace warren::device
