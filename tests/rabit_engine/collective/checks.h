// Runs one call of a collective on one rank, and compares the buffer with the expected result.
#pragma once

#include <cstddef>
#include <span>

#include "group_call.h"
#include "rabit_engine/collective/algorithm.h"

namespace warren::testing {

/// A reduction's inputs and its expected result.
struct ReductionCase {
  ReductionCase(const Sample& sample, int size, std::size_t count, std::size_t misalignment = 0);

  const Sample& sample;
  const std::size_t count;
  const std::size_t misalignment;
  std::vector<Bytes> inputs;
  Bytes expected;

  std::size_t element_bytes() const { return sample.reduction.element_bytes(); }
};

void CheckAllreduce(Caller& caller, collective::AllreduceFunction algorithm, const ReductionCase& test);
void CheckReduce(Caller& caller, collective::ReduceFunction algorithm, const ReductionCase& test, int root);
/// `offsets` are in elements.
void CheckReduceScatter(Caller& caller, collective::ReduceScatterFunction algorithm,
                        const ReductionCase& test, std::span<const std::size_t> offsets);
/// `offsets` are in bytes.
void CheckAllgather(Caller& caller, collective::AllgatherFunction algorithm,
                    std::span<const std::size_t> offsets);
void CheckBroadcast(Caller& caller, collective::BroadcastFunction algorithm, std::size_t bytes, int root);

/// Returns `size` + 1 ascending offsets from 0 to `count`, of slices with random lengths; some may be empty.
std::vector<std::size_t> UnevenOffsets(std::size_t count, int size);

}  // namespace warren::testing
