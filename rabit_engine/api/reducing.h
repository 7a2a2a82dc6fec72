// Reductions as the APIs of the collectives need them, from one buffer to another and with averages, built
// on the engine's, which work in place and have no averages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "rabit_engine/api/session.h"
#include "rabit_engine/reduce/reduction.h"

namespace warren::api {

inline void Copy(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

/// An operation as requested by the caller.
struct Wanted {
  Reduction reduction;
  bool average = false;
  std::shared_ptr<void> custom = nullptr;  ///< the custom operation that the reduction calls
};

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

/// A reduction over `count` elements of `send`, of which `length` elements from `first` on go to `recv`. Runs
/// in place if possible (if `recv` has room for all), else on a copy.
struct Reducing {
  const void* send;
  std::size_t count;
  void* recv;  ///< null if this rank gets nothing
  std::size_t first;
  std::size_t length;
};

/// `run(buffer, reduction)` calls the engine, in place on all `count` elements.
template <typename Run>
void Reduce(const Session& session, const Wanted& wanted, const Reducing& what, Run&& run) {
  const Reduction& reduction = wanted.reduction;
  const std::size_t element = reduction.element_bytes();
  const std::size_t bytes = what.count * element;
  const int ranks = session.world_size();
  if (wanted.average && reduction.rounds()) {  // round only once, after the division
    std::vector<float> floats(what.count);
    reduction.Widen(floats.data(), what.send, what.count);
    run(floats.data(), reduction.Wide());
    Divide<float>(floats.data() + what.first, what.length, ranks);
    if (what.length > 0) reduction.Narrow(what.recv, floats.data() + what.first, what.length);
    return;
  }
  const auto finish = [&](void* result) {
    if (!wanted.average) return;
    reduction.type() == DataType::kDouble ? Divide<double>(result, what.length, ranks)
                                          : Divide<float>(result, what.length, ranks);
  };
  const auto* send = static_cast<const std::byte*>(what.send);
  if (what.length == what.count) {
    Copy(what.recv, send, bytes);
    run(what.recv, reduction);
    return finish(what.recv);
  }
  const std::byte* const place = send == nullptr ? nullptr : send + what.first * element;
  // In place in the slice; the rest of `send` may be overwritten.
  if (what.recv == place && what.length > 0) {
    run(const_cast<std::byte*>(send), reduction);
    return finish(what.recv);
  }
  std::vector<std::byte> copy(send, send + bytes);
  run(copy.data(), reduction);
  Copy(what.recv, copy.data() + what.first * element, what.length * element);
  finish(what.recv);
}

/// Anything larger is copied and reduced one piece at a time: a copy of the whole would be newly allocated
/// memory in each call, which costs more than the reduction. Elements are reduced in rank order only, so
/// splitting into pieces does not change any bits.
inline constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

/// A reduce-scatter in which rank r's slice is [offsets[r], offsets[r + 1]), with the same offsets on all
/// ranks. `run(buffer, piece_offsets, reduction)` calls the engine, in place. `send` and `recv` may overlap
/// as in Reduce.
template <typename Run>
void ReduceScatterInPieces(const Session& session, const Wanted& wanted, const void* send, void* recv,
                           std::span<const std::size_t> offsets, Run&& run) {
  const std::size_t element = wanted.reduction.element_bytes();
  const std::size_t ranks = offsets.size() - 1;
  const auto own = static_cast<std::size_t>(session.rank());
  std::size_t longest = 0;
  for (std::size_t r = 0; r < ranks; ++r) longest = std::max(longest, offsets[r + 1] - offsets[r]);
  const std::size_t step = std::max<std::size_t>(1, kPieceBytes / element / ranks);
  const std::unique_ptr<std::byte[]> piece(new std::byte[step * ranks * element]);
  std::vector<std::size_t> piece_offsets(ranks + 1);
  for (std::size_t begin = 0; begin < longest; begin += step) {
    for (std::size_t r = 0; r < ranks; ++r) {
      const std::size_t slice = offsets[r + 1] - offsets[r];
      const std::size_t length = begin < slice ? std::min(step, slice - begin) : 0;
      Copy(piece.get() + piece_offsets[r] * element,
           static_cast<const std::byte*>(send) + (offsets[r] + begin) * element, length * element);
      piece_offsets[r + 1] = piece_offsets[r] + length;
    }
    const std::size_t first = piece_offsets[own];
    const std::size_t length = piece_offsets[own + 1] - first;
    std::byte* const result = piece.get() + first * element;
    Reduce(session, wanted, {piece.get(), piece_offsets.back(), length > 0 ? result : nullptr, first, length},
           [&](void* buffer, const Reduction& reduction) { run(buffer, piece_offsets, reduction); });
    if (length > 0) Copy(static_cast<std::byte*>(recv) + begin * element, result, length * element);
  }
}

}  // namespace warren::api
