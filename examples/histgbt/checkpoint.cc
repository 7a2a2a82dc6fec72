#include "examples/histgbt/checkpoint.h"

#include <stdexcept>
#include <type_traits>

namespace warren::histgbt {
namespace {

static_assert(std::is_trivially_copyable_v<Node>);

constexpr const char* kCutOff = "the checkpoint is cut off";

template <typename T>
void Take(rabit::Stream* stream, T& value) {
  if (!stream->Read(&value)) throw std::runtime_error(kCutOff);
}

}  // namespace

void State::Save(rabit::Stream* stream) const {
  stream->Write(agreed.cuts.offsets);
  stream->Write(agreed.cuts.values);
  stream->Write(agreed.cuts.has_missing);
  stream->Write(agreed.words);
  stream->Write(std::uint64_t{trees.size()});
  for (const Tree& tree : trees) {
    stream->Write(std::uint64_t{tree.nodes.size()});
    stream->Write(tree.nodes.data(), tree.nodes.size() * sizeof(Node));
  }
  stream->Write(rounds);
  stream->Write(best_score);
  stream->Write(best_round);
  stream->Write(stopped);
}

void State::Load(rabit::Stream* stream) {
  Take(stream, agreed.cuts.offsets);
  Take(stream, agreed.cuts.values);
  Take(stream, agreed.cuts.has_missing);
  Take(stream, agreed.words);
  std::uint64_t size = 0;
  Take(stream, size);
  trees.resize(size);
  for (Tree& tree : trees) {
    Take(stream, size);
    tree.nodes.resize(size);
    if (stream->Read(tree.nodes.data(), size * sizeof(Node)) != size * sizeof(Node))
      throw std::runtime_error(kCutOff);
  }
  Take(stream, rounds);
  Take(stream, best_score);
  Take(stream, best_round);
  Take(stream, stopped);
}

}  // namespace warren::histgbt
