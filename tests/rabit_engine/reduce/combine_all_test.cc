// CombineAll must follow the tree of order.h, however many operands there are and however long they are;
// `out` may be any of the inputs.
#include <gtest/gtest.h>

#include "tests/rabit_engine/reduce/reference.h"

namespace warren {
namespace {

using reference::Bytes;
using reference::kWorlds;
using reference::Pointers;

std::vector<Bytes> Inputs(DataType type, std::size_t world, std::size_t count) {
  std::vector<Bytes> inputs;
  for (std::size_t rank = 0; rank < world; ++rank)
    inputs.push_back(reference::Values(type, count, 100 * world + rank));
  return inputs;
}

TEST(CombineAll, GivesTheBitsOfTheTreeForEveryTableTypeAndOperation) {
  for (const auto& [type, operation] : reference::DefinedPairs()) {
    for (const std::size_t world : kWorlds) {
      // Slightly more than a block of the smallest type and several blocks of the largest type, with a tail.
      const std::vector<Bytes> inputs = Inputs(type, world, 2051);
      const Bytes wanted = reference::CombineAll(type, operation, inputs);
      for (const KernelTable* table : reference::Tables()) {
        Bytes out(wanted.size());
        Reduction::Typed(type, operation, *table).CombineAll(out.data(), Pointers(inputs), 2051);
        ASSERT_EQ(reference::Difference(type, out.data(), wanted), "")
            << reference::Describe(*table, type, operation) << " of " << world;
      }
    }
  }
}

TEST(CombineAll, OutMayBeAnyOfTheInputs) {
  for (const DataType type : {DataType::kFloat, DataType::kFloat16, DataType::kChar}) {
    const std::size_t count = 5003;
    for (const std::size_t world : kWorlds) {
      const std::vector<Bytes> inputs = Inputs(type, world, count);
      const Bytes wanted = reference::CombineAll(type, ReduceOp::kSum, inputs);
      for (const KernelTable* table : reference::Tables()) {
        for (std::size_t target = 0; target < world; ++target) {
          std::vector<Bytes> copies = inputs;
          Reduction::Typed(type, ReduceOp::kSum, *table)
              .CombineAll(copies[target].data(), Pointers(copies), count);
          for (std::size_t rank = 0; rank < world; ++rank) {
            ASSERT_EQ(
                reference::Difference(type, copies[rank].data(), rank == target ? wanted : inputs[rank]), "")
                << table->name << " " << Name(type) << ", out is input " << target << " of " << world
                << ", looking at input " << rank;
          }
        }
      }
    }
  }
}

TEST(CombineAll, TakesEveryLengthAndAlignment) {
  for (const DataType type : {DataType::kFloat, DataType::kFloat16, DataType::kBFloat16}) {
    for (const std::size_t world : {2, 3, 4, 5, 8, 11}) {
      for (const std::size_t count : {0, 1, 2, 3, 7, 15, 16, 17, 63, 65, 127, 511, 512, 513, 1024, 1025}) {
        for (const std::size_t skip : {0, 1, 3}) {
          std::vector<Bytes> inputs = Inputs(type, world, count);
          const Bytes wanted = reference::CombineAll(type, ReduceOp::kSum, inputs);
          for (Bytes& input : inputs) input.insert(input.begin(), skip, std::byte{});
          for (const KernelTable* table : reference::Tables()) {
            Bytes out(wanted.size() + skip + 1, std::byte{0x5a});
            Reduction::Typed(type, ReduceOp::kSum, *table)
                .CombineAll(out.data() + skip, Pointers(inputs, skip), count);
            ASSERT_EQ(reference::Difference(type, out.data() + skip, wanted), "")
                << table->name << ", " << count << " elements of " << world << ", " << skip << " bytes off";
            ASSERT_EQ(out.back(), std::byte{0x5a});
          }
        }
      }
    }
  }
}

TEST(CombineAll, HoldsForWorldsOfHundreds) {
  for (const DataType type : {DataType::kFloat, DataType::kFloat16, DataType::kBFloat16}) {
    for (const std::size_t world : {64, 65, 100, 511, 512, 513, 600}) {
      const std::vector<Bytes> inputs = Inputs(type, world, 5);
      const Bytes wanted = reference::CombineAll(type, ReduceOp::kSum, inputs);
      Bytes out(wanted.size());
      Reduction::Typed(type, ReduceOp::kSum).CombineAll(out.data(), Pointers(inputs), 5);
      EXPECT_EQ(reference::Difference(type, out.data(), wanted), "") << Name(type) << " of " << world;
    }
  }
}

TEST(CombineAll, SumsOfSixteenBitFloatsAreRoundedOnce) {
  // The sum of 1 and three halves of a unit in its last place. Rounding after each addition would lose the
  // first half; rounding once, at the end, takes the tie to the even neighbor.
  struct Case {
    DataType type;
    std::uint16_t one;
    std::uint16_t half_of_last_place;
    std::uint16_t sum;
  };
  for (const Case& c : {Case{DataType::kFloat16, 0x3c00, 0x1000, 0x3c02},
                        Case{DataType::kBFloat16, 0x3f80, 0x3b80, 0x3f82}}) {
    for (const std::size_t zeros : {0, 1, 4, 5, 13, 100}) {
      std::vector<std::uint16_t> values{c.one, c.half_of_last_place};
      values.resize(values.size() + zeros);  // so that another kernel adds the later elements
      values.insert(values.end(), 2, c.half_of_last_place);
      std::vector<const void*> inputs;
      for (const std::uint16_t& value : values) inputs.push_back(&value);
      for (const KernelTable* table : reference::Tables()) {
        std::uint16_t out = 0;
        Reduction::Typed(c.type, ReduceOp::kSum, *table).CombineAll(&out, inputs, 1);
        EXPECT_EQ(out, c.sum) << table->name << ' ' << Name(c.type) << " of " << inputs.size();
      }
    }
  }
}

TEST(CombineAll, OfNothingIsMisuse) {
  float out = 0;
  EXPECT_THROW(Reduction::Typed(DataType::kFloat, ReduceOp::kSum).CombineAll(&out, {}, 1), Misuse);
}

}  // namespace
}  // namespace warren
