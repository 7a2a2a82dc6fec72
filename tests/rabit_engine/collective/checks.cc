#include "checks.h"

#include <algorithm>

namespace warren::testing {
namespace {

std::string Describe(const Caller& caller, const ReductionCase& test) {
  return "rank " + std::to_string(caller.rank()) + " of " + std::to_string(caller.size()) + ", " +
         std::to_string(test.count) + " x " + test.sample.name;
}

}  // namespace

ReductionCase::ReductionCase(const Sample& sample, int size, std::size_t count, std::size_t misalignment)
    : sample(sample), count(count), misalignment(misalignment) {
  for (int rank = 0; rank < size; ++rank) inputs.push_back(sample.Values(rank, count));
  expected = Expected(sample.reduction, inputs);
}

void CheckAllreduce(Caller& caller, collective::AllreduceFunction algorithm, const ReductionCase& test) {
  GuardedBuffer buffer(test.inputs[caller.rank()], test.misalignment);
  caller.set_count(test.count);
  caller.Call(Collective::kAllreduce, test.element_bytes(),
              [&](PeerGroup& group) { algorithm(group, buffer.data(), test.count, test.sample.reduction); });
  EXPECT_TRUE(buffer.All() == test.expected) << Describe(caller, test);
  EXPECT_TRUE(buffer.GuardsHold()) << Describe(caller, test);
}

void CheckReduce(Caller& caller, collective::ReduceFunction algorithm, const ReductionCase& test, int root) {
  GuardedBuffer buffer(test.inputs[caller.rank()], test.misalignment);
  caller.set_count(test.count);
  caller.Call(Collective::kReduce, test.element_bytes(), [&](PeerGroup& group) {
    algorithm(group, buffer.data(), test.count, test.sample.reduction, root);
  });
  if (caller.rank() == root) {
    EXPECT_TRUE(buffer.All() == test.expected) << Describe(caller, test);
  }
  EXPECT_TRUE(buffer.GuardsHold()) << Describe(caller, test);
}

void CheckReduceScatter(Caller& caller, collective::ReduceScatterFunction algorithm,
                        const ReductionCase& test, std::span<const std::size_t> offsets) {
  GuardedBuffer buffer(test.inputs[caller.rank()], test.misalignment);
  caller.set_count(test.count);
  caller.Call(Collective::kReduceScatter, test.element_bytes(),
              [&](PeerGroup& group) { algorithm(group, buffer.data(), offsets, test.sample.reduction); });
  const std::size_t begin = offsets[caller.rank()] * test.element_bytes();
  const std::size_t end = offsets[caller.rank() + 1] * test.element_bytes();
  const Bytes expected(test.expected.begin() + begin, test.expected.begin() + end);
  EXPECT_TRUE(buffer.Part(begin, end) == expected) << Describe(caller, test);
  EXPECT_TRUE(buffer.GuardsHold()) << Describe(caller, test);
}

void CheckAllgather(Caller& caller, collective::AllgatherFunction algorithm,
                    std::span<const std::size_t> offsets) {
  const Bytes expected = RandomBytes(offsets.back(), 1);
  Bytes input(expected.size());
  std::copy(expected.begin() + offsets[caller.rank()], expected.begin() + offsets[caller.rank() + 1],
            input.begin() + offsets[caller.rank()]);
  GuardedBuffer buffer(input, 1);
  caller.set_count(offsets.back());
  caller.Call(Collective::kAllgather, 1, [&](PeerGroup& group) { algorithm(group, buffer.data(), offsets); });
  EXPECT_TRUE(buffer.All() == expected)
      << "rank " << caller.rank() << " of " << caller.size() << ", " << offsets.back() << " bytes";
  EXPECT_TRUE(buffer.GuardsHold());
}

void CheckBroadcast(Caller& caller, collective::BroadcastFunction algorithm, std::size_t bytes, int root) {
  const Bytes expected = RandomBytes(bytes, root);
  GuardedBuffer buffer(caller.rank() == root ? expected : Bytes(bytes), 3);
  caller.set_count(bytes);
  caller.Call(Collective::kBroadcast, 1,
              [&](PeerGroup& group) { algorithm(group, buffer.data(), bytes, root); });
  EXPECT_TRUE(buffer.All() == expected)
      << "rank " << caller.rank() << " of " << caller.size() << ", " << bytes << " bytes from root " << root;
  EXPECT_TRUE(buffer.GuardsHold());
}

std::vector<std::size_t> UnevenOffsets(std::size_t count, int size) {
  Random random(count + size);
  std::vector<std::size_t> offsets{0};
  for (int i = 1; i < size; ++i) offsets.push_back(random() % 3 == 0 ? 0 : random() % (count + 1));
  offsets.push_back(count);
  std::sort(offsets.begin(), offsets.end());
  return offsets;
}

}  // namespace warren::testing
