// The ABI promise of docs/explanation/abi.md for types, values and layouts that are compiled into a program.
// exported_symbols_test.py checks the names, and the arguments of the C functions. Changing a line here
// requires a new SOVERSION, and so a new minor version.
#include <gtest/gtest.h>
#include <rabit/c_api.h>
#include <rabit/device.h>
#include <rabit/rabit.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

namespace {

template <typename Type, typename Promised>
constexpr bool kIs = std::is_same_v<Type, Promised>;

static_assert(kIs<rbt_ulong, unsigned long>);

static_assert(RABIT_DEVICE_INT8 == 0 && RABIT_DEVICE_UINT8 == 1 && RABIT_DEVICE_INT32 == 2 &&
              RABIT_DEVICE_UINT32 == 3 && RABIT_DEVICE_INT64 == 4 && RABIT_DEVICE_UINT64 == 5 &&
              RABIT_DEVICE_FLOAT16 == 6 && RABIT_DEVICE_FLOAT32 == 7 && RABIT_DEVICE_FLOAT64 == 8 &&
              RABIT_DEVICE_BFLOAT16 == 9 && RABIT_DEVICE_FLOAT8E4M3 == 10 && RABIT_DEVICE_FLOAT8E5M2 == 11);
static_assert(RABIT_DEVICE_SUM == 0 && RABIT_DEVICE_PRODUCT == 1 && RABIT_DEVICE_MAX == 2 &&
              RABIT_DEVICE_MIN == 3 && RABIT_DEVICE_AVERAGE == 4);

static_assert(RABIT_CHAR == 0 && RABIT_UCHAR == 1 && RABIT_INT == 2 && RABIT_UINT == 3 && RABIT_LONG == 4 &&
              RABIT_ULONG == 5 && RABIT_FLOAT == 6 && RABIT_DOUBLE == 7 && RABIT_LONGLONG == 8 &&
              RABIT_ULONGLONG == 9 && RABIT_FLOAT16 == 10 && RABIT_BFLOAT16 == 11);

// C++: the values that the inline functions of rabit.h pass to the library.
namespace mpi = rabit::engine::mpi;
static_assert(mpi::kMax == 0 && mpi::kMin == 1 && mpi::kSum == 2 && mpi::kBitwiseOR == 3);
static_assert(mpi::kChar == 0 && mpi::kUChar == 1 && mpi::kInt == 2 && mpi::kUInt == 3 && mpi::kLong == 4 &&
              mpi::kULong == 5 && mpi::kFloat == 6 && mpi::kDouble == 7 && mpi::kLongLong == 8 &&
              mpi::kULongLong == 9 && mpi::kFloat16 == 10 && mpi::kBFloat16 == 11);
static_assert(kIs<std::underlying_type_t<mpi::OpType>, int> &&
              kIs<std::underlying_type_t<mpi::DataType>, int>);

// Types that callers store in their own memory.
static_assert(sizeof(rabit::Float16) == 2 && alignof(rabit::Float16) == 2 && sizeof(rabit::BFloat16) == 2 &&
              alignof(rabit::BFloat16) == 2);
static_assert(std::is_trivially_copyable_v<rabit::Float16> && std::is_trivial_v<rabit::Float16> &&
              std::is_standard_layout_v<rabit::Float16> && std::is_trivially_copyable_v<rabit::BFloat16> &&
              std::is_trivial_v<rabit::BFloat16> && std::is_standard_layout_v<rabit::BFloat16>);

using rabit::Serializable;
using rabit::engine::IEngine;
using Prepare = void (*)(void*);
using Reduce = void (*)(const void*, void*, int, const MPI::Datatype&);

static_assert(sizeof(IEngine) == sizeof(void*), "no member but the pointer to the virtual functions");

/// Returns the vtable slot of a virtual function, which the pointer to the function contains (Itanium C++
/// ABI, 2.3).
template <typename Function>
std::size_t Place(Function IEngine::*function) {
  std::uintptr_t offset = 0;
  std::memcpy(&offset, &function, sizeof(offset));
  return (offset & ~std::uintptr_t{1}) / sizeof(void*);
}

TEST(Abi, VirtualFunctionsOfTheEngineAreWhereProgramsWereCompiledToFindThem) {
  // Slots 0 and 1 belong to the destructor.
  EXPECT_EQ(
      Place<void(void*, size_t, size_t, size_t, size_t, const char*, int, const char*)>(&IEngine::Allgather),
      2U);
  EXPECT_EQ((Place<void(void*, size_t, size_t, Reduce, Prepare, void*, const char*, int, const char*)>(
                &IEngine::Allreduce)),
            3U);
  EXPECT_EQ(Place<void(void*, size_t, int, const char*, int, const char*)>(&IEngine::Broadcast), 4U);
  EXPECT_EQ(Place<void()>(&IEngine::InitAfterException), 5U);
  EXPECT_EQ((Place<int(Serializable*, Serializable*)>(&IEngine::LoadCheckPoint)), 6U);
  EXPECT_EQ((Place<void(const Serializable*, const Serializable*)>(&IEngine::CheckPoint)), 7U);
  EXPECT_EQ(Place<void(const Serializable*)>(&IEngine::LazyCheckPoint), 8U);
  EXPECT_EQ(Place<int()>(&IEngine::LoadCheckPoint), 9U);
  EXPECT_EQ(Place<void()>(&IEngine::CheckPoint), 10U);
  EXPECT_EQ(Place<int() const>(&IEngine::VersionNumber), 11U);
  EXPECT_EQ(Place<int() const>(&IEngine::GetRingPrevRank), 12U);
  EXPECT_EQ(Place<int() const>(&IEngine::GetRank), 13U);
  EXPECT_EQ(Place<int() const>(&IEngine::GetWorldSize), 14U);
  EXPECT_EQ(Place<bool() const>(&IEngine::IsDistributed), 15U);
  EXPECT_EQ(Place<std::string() const>(&IEngine::GetHost), 16U);
  EXPECT_EQ(Place<void(const std::string&)>(&IEngine::TrackerPrint), 17U);
  EXPECT_EQ((Place<void(void*, size_t, size_t, size_t, size_t, const char*, int, const char*)>(
                &IEngine::AllgatherSlice)),
            18U);
}

}  // namespace
