#include "rabit_engine/api/reduce_from_to.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "rabit_engine/base/copy_bytes.h"
#include "rabit_engine/reduce/reduction.h"

namespace warren::api {
namespace {

/// The maximum size of a piece, unless one element per rank is larger. A piece contains a part of every
/// rank's slice.
constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

template <typename Float>
void Divide(void* buffer, std::size_t count, int by) {
  auto* bytes = static_cast<std::byte*>(buffer);
  for (std::size_t i = 0; i < count; ++i, bytes += sizeof(Float)) {
    Float value;
    std::memcpy(&value, bytes, sizeof(value));
    value /= static_cast<Float>(by);
    std::memcpy(bytes, &value, sizeof(value));
  }
}

/// This rank's part of the result: elements [first, first + length) of `count`.
struct Share {
  std::size_t count = 0;
  std::size_t first = 0;
  std::size_t length = 0;
};

Share ShareOf(const Operation& operation, int rank) {
  if (operation.kind == Collective::kReduceScatter) {
    const auto offsets = operation.receive_offsets;
    return {offsets.back(), offsets[rank], offsets[rank + 1] - offsets[rank]};
  }
  const bool gets_result = operation.kind == Collective::kAllreduce || rank == operation.root;
  return {operation.count, 0, gets_result ? operation.count : 0};
}

/// Returns the operation with `reduction`, in place on `buffer`, and without the division of averages.
Operation InPlace(const Operation& operation, void* buffer, const Reduction& reduction) {
  Operation in_place = operation;
  in_place.send = in_place.receive = buffer;
  in_place.reduction = &reduction;
  in_place.in_place = true;
  in_place.average = false;
  return in_place;
}

/// Averages 16-bit floats: computes in float, and rounds once, after the division.
void AverageInFloats(const Operation& operation, const Share& share, void* result, int world_size,
                     const RunInPlace& run) {
  const Reduction& reduction = *operation.reduction;
  const Reduction on_floats = reduction.Wide();
  std::vector<float> floats(share.count);
  reduction.Widen(floats.data(), operation.send, share.count);
  run(InPlace(operation, floats.data(), on_floats));
  if (share.length == 0) return;
  Divide<float>(floats.data() + share.first, share.length, world_size);
  reduction.Narrow(result, floats.data() + share.first, share.length);
}

void ReduceWhole(const Operation& operation, int rank, int world_size, const RunInPlace& run) {
  const Reduction& reduction = *operation.reduction;
  const Share share = ShareOf(operation, rank);
  const std::size_t element = reduction.element_bytes();
  const auto* const send = static_cast<const std::byte*>(operation.send);
  const bool in_place = operation.in_place;
  // If the operation is in place, the result replaces this rank's elements.
  std::byte* const receive = static_cast<std::byte*>(operation.receive);
  void* const result = in_place && receive != nullptr ? receive + share.first * element : receive;
  if (operation.average && reduction.rounds()) {
    return AverageInFloats(operation, share, result, world_size, run);
  }
  const auto finish = [&] {
    if (!operation.average || share.length == 0) return;
    reduction.type() == DataType::kDouble ? Divide<double>(result, share.length, world_size)
                                          : Divide<float>(result, share.length, world_size);
  };
  const bool is_slice_of_send = share.length > 0 && result == send + share.first * element;
  if (in_place || is_slice_of_send) {
    run(InPlace(operation, const_cast<std::byte*>(send), reduction));
    return finish();
  }
  if (share.length == share.count) {
    CopyBytes(result, send, share.count * element);
    run(InPlace(operation, result, reduction));
    return finish();
  }
  std::vector<std::byte> copy(send, send + share.count * element);
  run(InPlace(operation, copy.data(), reduction));
  CopyBytes(result, copy.data() + share.first * element, share.length * element);
  finish();
}

/// Every element is reduced in the same order of ranks, so splitting into pieces does not change any bits.
void ReduceScatterInPieces(const Operation& operation, int rank, int world_size, const RunInPlace& run) {
  const std::span<const std::size_t> offsets = operation.receive_offsets;
  const std::size_t element = operation.reduction->element_bytes();
  const std::size_t ranks = offsets.size() - 1;
  const auto own = static_cast<std::size_t>(rank);
  std::size_t longest = 0;
  for (std::size_t r = 0; r < ranks; ++r) longest = std::max(longest, offsets[r + 1] - offsets[r]);
  const std::size_t step = std::max<std::size_t>(1, kPieceBytes / element / ranks);
  const std::unique_ptr<std::byte[]> piece(new std::byte[step * ranks * element]);
  std::vector<std::size_t> piece_offsets(ranks + 1);
  for (std::size_t begin = 0; begin < longest; begin += step) {
    for (std::size_t r = 0; r < ranks; ++r) {
      const std::size_t slice = offsets[r + 1] - offsets[r];
      const std::size_t length = begin < slice ? std::min(step, slice - begin) : 0;
      CopyBytes(piece.get() + piece_offsets[r] * element,
                static_cast<const std::byte*>(operation.send) + (offsets[r] + begin) * element,
                length * element);
      piece_offsets[r + 1] = piece_offsets[r] + length;
    }
    Operation on_piece = operation;
    on_piece.send = on_piece.receive = piece.get();
    on_piece.in_place = true;
    on_piece.receive_offsets = piece_offsets;
    operation.average ? ReduceWhole(on_piece, rank, world_size, run) : run(on_piece);
    const std::size_t length = piece_offsets[own + 1] - piece_offsets[own];
    if (length == 0) continue;
    CopyBytes(static_cast<std::byte*>(operation.receive) + begin * element,
              piece.get() + piece_offsets[own] * element, length * element);
  }
}

}  // namespace

bool GoesInPieces(const Operation& operation, int world_size) {
  return operation.kind == Collective::kReduceScatter && !operation.in_place && world_size > 1 &&
         operation.receive_offsets.back() * operation.reduction->element_bytes() > kPieceBytes;
}

void ReduceFromTo(const Operation& operation, int rank, int world_size, const RunInPlace& run) {
  if (GoesInPieces(operation, world_size)) return ReduceScatterInPieces(operation, rank, world_size, run);
  ReduceWhole(operation, rank, world_size, run);
}

}  // namespace warren::api
