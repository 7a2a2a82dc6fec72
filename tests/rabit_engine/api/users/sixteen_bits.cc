// A C++11 program that reduces 16-bit floats. It checks its own results, in jobs of up to 4 workers.
#include <rabit/half.h>
#include <rabit/rabit.h>

#include <cstdio>
#include <vector>

namespace {

int failures = 0;
void Check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "rank %d: failed: %s\n", rabit::GetRank(), what);
  ++failures;
}

/// `part` is half a unit in the last place of 1: if each addition were rounded, the sum would stay 1.
template <typename Half>
void AllOperations(float part) {
  const int rank = rabit::GetRank();
  const int world = rabit::GetWorldSize();
  const std::size_t counts[] = {0, 1, 7, 20000};
  for (const std::size_t count : counts) {
    std::vector<Half> values(count, Half(rank == 0 ? 1.0f : part));
    rabit::Allreduce<rabit::op::Sum>(values.data(), count);
    const float sum = static_cast<float>(Half(1.0f + static_cast<float>(world - 1) * part));
    for (const Half value : values) Check(static_cast<float>(value) == sum, "sum");

    rabit::Allreduce<rabit::op::Max>(values.data(), count,
                                     [&]() { values.assign(count, Half(static_cast<float>(-rank))); });
    for (const Half value : values) Check(static_cast<float>(value) == 0.0f, "max");
    values.assign(count, Half(static_cast<float>(-rank)));
    rabit::Allreduce<rabit::op::Min>(values.data(), count);
    for (const Half value : values) Check(static_cast<float>(value) == static_cast<float>(1 - world), "min");
  }
}

}  // namespace

int main(int argc, char* argv[]) {
  rabit::Init(argc, argv);
  AllOperations<rabit::Float16>(1.0f / 2048);
  AllOperations<rabit::BFloat16>(1.0f / 256);
  // The compiler's own 16-bit types, if it has them in C++.
#if defined(__STDCPP_FLOAT16_T__) || \
    (defined(__clang__) && defined(__FLT16_MANT_DIG__) && __clang_major__ >= 15)
  AllOperations<_Float16>(1.0f / 2048);
#endif
#if defined(__aarch64__)
  AllOperations<__fp16>(1.0f / 2048);
#endif
  rabit::Finalize();
  return failures == 0 ? 0 : 1;
}
