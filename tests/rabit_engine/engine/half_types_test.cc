// Sums and products of 16-bit floats are rounded once by every algorithm, whether it sends floats or halves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "rabit_engine/base/error.h"
#include "rabit_engine/collective/registry.h"
#include "tests/rabit_engine/engine/thread_world.h"

namespace warren {
namespace {

using Halves = std::vector<std::uint16_t>;

/// Returns numbers with magnitudes from 1 to 2. On ranks other than 0, three out of four have magnitudes from
/// half a unit to one unit in the last place of 1 instead, so that intermediate rounding changes the result.
std::uint16_t ValueOf(DataType type, int rank, std::size_t i) {
  std::uint64_t x = i * 0x9e37'79b9'7f4a'7c15 + static_cast<std::uint64_t>(rank) * 0xbf58'476d'1ce4'e5b9;
  x ^= x >> 29;
  const bool is_small = rank != 0 && x % 4 != 0;
  const auto fraction = static_cast<std::uint16_t>(x >> 8);
  if (type == DataType::kFloat16) {
    return static_cast<std::uint16_t>((is_small ? 0x1000 : 0x3c00) | (fraction & 0x83ff));
  }
  return static_cast<std::uint16_t>((is_small ? 0x3b80 : 0x3f80) | (fraction & 0x807f));
}

Halves ValuesOf(DataType type, int rank, std::size_t count) {
  Halves values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = ValueOf(type, rank, i);
  return values;
}

Halves Expected(const Reduction& reduction, int ranks, std::size_t count) {
  std::vector<Halves> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(ValuesOf(reduction.type(), rank, count));
  std::vector<const void*> inputs;
  for (const Halves& values : all) inputs.push_back(values.data());
  Halves result(count);
  reduction.CombineAll(result.data(), inputs, count);
  return result;
}

/// Offsets of uneven slices, some of them empty.
std::vector<std::size_t> OffsetsOf(std::size_t count, int ranks) {
  std::vector<std::size_t> offsets{0};
  for (int rank = 1; rank < ranks; ++rank) {
    offsets.push_back(rank % 3 == 0 ? offsets.back() : offsets.back() + (count - offsets.back()) / 3);
  }
  offsets.push_back(count);
  return offsets;
}

void CheckAll(NativeCommunicator& engine, const Reduction& reduction, std::size_t count) {
  const int rank = engine.rank();
  const int ranks = engine.world_size();
  const Halves input = ValuesOf(reduction.type(), rank, count);
  const Halves expected = Expected(reduction, ranks, count);
  const std::string what = std::string(Name(reduction.type())) + ' ' +
                           std::string(Name(reduction.operation())) + " of " + std::to_string(count) +
                           ", rank " + std::to_string(rank);

  Halves values = input;
  engine.Allreduce(values.data(), count, reduction);
  EXPECT_EQ(values, expected) << "allreduce, " << what;

  Halves output(count);
  engine.Run(Operation::Allreduce(input.data(), output.data(), count, reduction));
  EXPECT_EQ(output, expected) << "allreduce into another buffer, " << what;

  const int root = ranks / 2;
  values = input;
  engine.Reduce(values.data(), count, reduction, root);
  if (rank == root) {
    EXPECT_EQ(values, expected) << "reduce, " << what;
  }

  const std::vector<std::size_t> offsets = OffsetsOf(count, ranks);
  values = input;
  engine.ReduceScatter(values.data(), offsets, reduction);
  const auto begin = static_cast<std::ptrdiff_t>(offsets[static_cast<std::size_t>(rank)]);
  const auto end = static_cast<std::ptrdiff_t>(offsets[static_cast<std::size_t>(rank) + 1]);
  EXPECT_EQ(Halves(values.begin() + begin, values.begin() + end),
            Halves(expected.begin() + begin, expected.begin() + end))
      << "reduce-scatter, " << what;
}

std::vector<std::string> AlgorithmsOverLinks() {
  std::vector<std::string> names{""};  // the engine chooses the algorithm
  for (const collective::Algorithm* algorithm : collective::Algorithms()) {
    const bool reduces = algorithm->allreduce != nullptr || algorithm->reduce_scatter != nullptr;
    if (reduces && algorithm->needs == collective::kNothing) names.emplace_back(algorithm->name);
  }
  return names;
}

TEST(HalfTypes, EveryAlgorithmRoundsSumsAndProductsOnce) {
  for (const std::string& algorithm : AlgorithmsOverLinks()) {
    for (const int ranks : {2, 3, 4, 5, 7, 8}) {
      SCOPED_TRACE(::testing::Message() << "by '" << algorithm << "', " << ranks << " ranks");
      Settings settings;
      settings.algorithm = algorithm;
      settings.shared_memory = SharedMemory::kOff;
      testing::ThreadWorld(ranks).Run(settings, [](NativeCommunicator& engine) {
        for (const DataType type : {DataType::kFloat16, DataType::kBFloat16}) {
          for (const std::size_t count : {0, 1, 2, 9, 3001}) {
            CheckAll(engine, Reduction::Typed(type, ReduceOp::kSum), count);
            CheckAll(engine, Reduction::Typed(type, ReduceOp::kProduct), count);
          }
        }
        // Enough elements for several pieces, of which the last is short.
        CheckAll(engine, Reduction::Typed(DataType::kFloat16, ReduceOp::kSum), 600'003);
      });
    }
  }
}

TEST(HalfTypes, RanksThatReduceOtherTypesAreToldWhatTheyCalled) {
  Settings settings;
  settings.algorithm = "tree";
  settings.shared_memory = SharedMemory::kOff;
  const auto differ = [](NativeCommunicator& engine) {
    std::vector<float> values(8);
    // Halves are sent as floats, so all ranks send the same number of bytes.
    const bool halves = engine.rank() == 1;
    engine.Allreduce(values.data(), 8,
                     Reduction::Typed(halves ? DataType::kFloat16 : DataType::kFloat, ReduceOp::kSum));
  };
  EXPECT_THAT([&] { testing::ThreadWorld(3).Run(settings, differ); },
              ::testing::ThrowsMessage<EngineError>(::testing::AllOf(::testing::HasSubstr("8 float16, sum"),
                                                                     ::testing::HasSubstr("8 float, sum"))));
}

}  // namespace
}  // namespace warren
