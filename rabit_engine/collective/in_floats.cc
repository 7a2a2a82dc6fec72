#include "rabit_engine/collective/in_floats.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "rabit_engine/base/scratch.h"
#include "rabit_engine/collective/slices.h"
#include "rabit_engine/reduce/reduction.h"

namespace warren::collective {
namespace {

constexpr std::size_t kFloats = (std::size_t{1} << 20) / sizeof(float);

const std::byte* At(const void* buffer, std::size_t element, const Reduction& reduction) {
  return static_cast<const std::byte*>(buffer) + element * reduction.element_bytes();
}
std::byte* At(void* buffer, std::size_t element, const Reduction& reduction) {
  return static_cast<std::byte*>(buffer) + element * reduction.element_bytes();
}

Operation OnFloats(const Operation& operation, void* floats, const Reduction& on_floats) {
  Operation result = operation;
  result.send = result.receive = floats;
  result.reduction = &on_floats;
  result.in_place = true;
  return result;
}

/// Runs an allreduce or a reduce. `output` is nullptr on a member that receives no result.
void ReduceInFloats(const Operation& operation, void* output, const RunOnFloats& run) {
  const Reduction& reduction = *operation.reduction;
  const std::size_t count = operation.count;
  const Reduction on_floats = reduction.Wide();
  const Scratch floats(std::min(count, kFloats) * sizeof(float));
  Operation on_piece = OnFloats(operation, floats.data(), on_floats);
  for (std::size_t i = 0; i < NumChunks(count, kFloats); ++i) {
    const Range piece = Chunk({0, count}, kFloats, i);
    reduction.Widen(floats.data(), At(operation.send, piece.begin, reduction), piece.size());
    on_piece.count = piece.size();
    run(on_piece);
    if (output != nullptr) {
      reduction.Narrow(At(output, piece.begin, reduction), floats.data(), piece.size());
    }
  }
}

void ReduceScatterInFloats(const Operation& operation, int member, const RunOnFloats& run) {
  const Reduction& reduction = *operation.reduction;
  const std::span<const std::size_t> offsets = operation.receive_offsets;
  const Reduction on_floats = reduction.Wide();
  const int members = static_cast<int>(offsets.size()) - 1;
  // A piece consists of a chunk of every slice, so that it contains data for each member.
  const std::size_t per_chunk = std::max<std::size_t>(1, kFloats / static_cast<std::size_t>(members));
  const std::size_t longest = LongestSlice(offsets);
  const Scratch floats(std::min(offsets.back(), per_chunk * static_cast<std::size_t>(members)) *
                       sizeof(float));
  std::vector<std::size_t> places(offsets.size());
  Operation on_piece = OnFloats(operation, floats.data(), on_floats);
  on_piece.receive_offsets = places;
  for (std::size_t i = 0; i < NumChunks(longest, per_chunk); ++i) {
    for (int slice = 0; slice < members; ++slice) {
      const Range chunk = Chunk(Slice(offsets, slice), per_chunk, i);
      reduction.Widen(floats.data() + places[slice] * sizeof(float),
                      At(operation.send, chunk.begin, reduction), chunk.size());
      places[slice + 1] = places[slice] + chunk.size();
    }
    run(on_piece);
    reduction.Narrow(At(operation.receive, Chunk(Slice(offsets, member), per_chunk, i).begin, reduction),
                     floats.data() + places[member] * sizeof(float), Slice(places, member).size());
  }
}

}  // namespace

void RunInFloats(const Operation& operation, int member, const RunOnFloats& run) {
  if (operation.kind == Collective::kReduceScatter) return ReduceScatterInFloats(operation, member, run);
  const bool gets_result = operation.kind == Collective::kAllreduce || operation.root == member;
  ReduceInFloats(operation, gets_result ? operation.receive : nullptr, run);
}

}  // namespace warren::collective
