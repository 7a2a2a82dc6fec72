#include "rabit_engine/collective/in_floats.h"

#include <algorithm>
#include <vector>

#include "rabit_engine/collective/scratch.h"
#include "rabit_engine/collective/slices.h"

namespace warren::collective {
namespace {

constexpr std::size_t kFloats = (std::size_t{1} << 20) / sizeof(float);

const std::byte* At(const void* buffer, std::size_t element, const Reduction& reduction) {
  return static_cast<const std::byte*>(buffer) + element * reduction.element_bytes();
}
std::byte* At(void* buffer, std::size_t element, const Reduction& reduction) {
  return static_cast<std::byte*>(buffer) + element * reduction.element_bytes();
}

}  // namespace

void ReduceInFloats(const void* input, void* output, std::size_t count, const Reduction& reduction,
                    const ReduceFloats& run) {
  const Reduction on_floats = reduction.Wide();
  const Scratch floats(std::min(count, kFloats) * sizeof(float));
  for (std::size_t i = 0; i < NumChunks(count, kFloats); ++i) {
    const Range piece = Chunk({0, count}, kFloats, i);
    reduction.Widen(floats.data(), At(input, piece.begin, reduction), piece.size());
    run(floats.data(), piece.size(), on_floats);
    if (output != nullptr) {
      reduction.Narrow(At(output, piece.begin, reduction), floats.data(), piece.size());
    }
  }
}

void ReduceScatterInFloats(void* buffer, std::span<const std::size_t> offsets, const Reduction& reduction,
                           int member, const ReduceScatterFloats& run) {
  const Reduction on_floats = reduction.Wide();
  const int members = static_cast<int>(offsets.size()) - 1;
  // A piece consists of a chunk of every slice, so that each member has a part in it.
  const std::size_t per_chunk = std::max<std::size_t>(1, kFloats / static_cast<std::size_t>(members));
  const std::size_t longest = LongestSlice(offsets);
  const Scratch floats(std::min(offsets.back(), per_chunk * static_cast<std::size_t>(members)) *
                       sizeof(float));
  std::vector<std::size_t> places(offsets.size());
  for (std::size_t i = 0; i < NumChunks(longest, per_chunk); ++i) {
    for (int slice = 0; slice < members; ++slice) {
      const Range chunk = Chunk(Slice(offsets, slice), per_chunk, i);
      reduction.Widen(floats.data() + places[slice] * sizeof(float), At(buffer, chunk.begin, reduction),
                      chunk.size());
      places[slice + 1] = places[slice] + chunk.size();
    }
    run(floats.data(), places, on_floats);
    reduction.Narrow(At(buffer, Chunk(Slice(offsets, member), per_chunk, i).begin, reduction),
                     floats.data() + places[member] * sizeof(float), Slice(places, member).size());
  }
}

}  // namespace warren::collective
