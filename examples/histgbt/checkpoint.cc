#include "examples/histgbt/checkpoint.h"

#include <stdexcept>
#include <type_traits>

namespace warren::histgbt {
namespace {

template <typename T>
void Put(rabit::Stream& stream, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  stream.Write(&value, sizeof value);
}

template <typename T>
void PutAll(rabit::Stream& stream, const std::vector<T>& values) {
  static_assert(std::is_trivially_copyable_v<T>);
  Put(stream, static_cast<std::uint64_t>(values.size()));
  stream.Write(values.data(), values.size() * sizeof(T));
}

void Read(rabit::Stream& stream, void* to, std::size_t bytes) {
  if (bytes > 0 && stream.Read(to, bytes) != bytes) throw std::runtime_error("the checkpoint is cut off");
}

template <typename T>
void Take(rabit::Stream& stream, T& value) {
  Read(stream, &value, sizeof value);
}

template <typename T>
void TakeAll(rabit::Stream& stream, std::vector<T>& values) {
  std::uint64_t size = 0;
  Take(stream, size);
  values.resize(size);
  Read(stream, values.data(), size * sizeof(T));
}

}  // namespace

void State::Save(rabit::Stream* stream) const {
  PutAll(*stream, agreed.cuts.offsets);
  PutAll(*stream, agreed.cuts.values);
  PutAll(*stream, agreed.cuts.has_missing);
  PutAll(*stream, agreed.words);
  Put(*stream, static_cast<std::uint64_t>(trees.size()));
  for (const Tree& tree : trees) PutAll(*stream, tree.nodes);
  Put(*stream, rounds);
  Put(*stream, best_score);
  Put(*stream, best_round);
  Put(*stream, stopped);
}

void State::Load(rabit::Stream* stream) {
  TakeAll(*stream, agreed.cuts.offsets);
  TakeAll(*stream, agreed.cuts.values);
  TakeAll(*stream, agreed.cuts.has_missing);
  TakeAll(*stream, agreed.words);
  std::uint64_t size = 0;
  Take(*stream, size);
  trees.resize(size);
  for (Tree& tree : trees) TakeAll(*stream, tree.nodes);
  Take(*stream, rounds);
  Take(*stream, best_score);
  Take(*stream, best_round);
  Take(*stream, stopped);
}

}  // namespace warren::histgbt
