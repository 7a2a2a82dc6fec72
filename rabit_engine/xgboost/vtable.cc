#include "rabit_engine/xgboost/vtable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace warren::xgboost {
namespace {

using Word = std::uintptr_t;

/// Whether the word is the address of this text, including its terminating 0. Reads only the memory to which
/// the word points: libraries with GPU code have hundreds of megabytes of constants.
bool PointsTo(const LibraryImage& image, Word word, const std::string& text) {
  const auto* address = reinterpret_cast<const std::byte*>(word);  // NOLINT(performance-no-int-to-ptr)
  return std::any_of(image.read_only.begin(), image.read_only.end(), [&](const MemoryRange& range) {
    return range.Contains(address) && static_cast<std::size_t>(range.end - address) > text.size() &&
           std::memcmp(address, text.c_str(), text.size() + 1) == 0;
  });
}

/// Returns the words of the range in which the loader writes addresses.
std::span<const Word> RelocatedWords(const LibraryImage& image) {
  constexpr Word kMask = sizeof(Word) - 1;
  const Word begin = (reinterpret_cast<Word>(image.relocated.begin) + kMask) & ~kMask;
  const Word end = reinterpret_cast<Word>(image.relocated.end) & ~kMask;
  if (begin >= end) return {};
  const auto* const first = reinterpret_cast<const Word*>(begin);  // NOLINT(performance-no-int-to-ptr)
  return {first, (end - begin) / sizeof(Word)};                    // NOLINT(performance-no-int-to-ptr)
}

bool IsCode(const LibraryImage& image, Word word) {
  const auto* address = reinterpret_cast<const std::byte*>(word);  // NOLINT(performance-no-int-to-ptr)
  return std::any_of(image.executable.begin(), image.executable.end(),
                     [&](const MemoryRange& range) { return range.Contains(address); });
}

}  // namespace

std::span<void* const> FindVtable(const LibraryImage& image, std::string_view type_name,
                                  std::size_t num_functions) {
  const std::string name(type_name);
  const std::span<const Word> words = RelocatedWords(image);
  // A type_info object has this layout: {its own vtable, the name, possibly bases}.
  std::vector<Word> types;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (PointsTo(image, words[i], name)) types.push_back(reinterpret_cast<Word>(&words[i - 1]));
  }
  if (types.empty()) throw Refusal(fmt::format("it has no class of the type {}", type_name));
  // A vtable has this layout: {offset to the whole object, which is 0, the type_info object, the functions}.
  // The type_info objects of derived classes point to this one, too, but with no 0 before the pointer.
  std::vector<const Word*> tables;
  bool outside = false;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (!std::ranges::binary_search(types, words[i]) || words[i - 1] != 0) continue;
    const std::span<const Word> functions =
        words.subspan(i + 1, std::min(num_functions, words.size() - i - 1));
    const bool all_code = functions.size() == num_functions &&
                          std::all_of(functions.begin(), functions.end(),
                                      [&](Word function) { return IsCode(image, function); });
    if (all_code) {
      tables.push_back(functions.data());
    } else {
      outside = true;
    }
  }
  if (outside) {
    throw Refusal(
        fmt::format("not all {} virtual functions of {} lie in its code", num_functions, type_name));
  }
  if (tables.size() != 1) {
    throw Refusal(fmt::format("it has {} tables of virtual functions of {}, where one was expected",
                              tables.empty() ? "no" : std::to_string(tables.size()), type_name));
  }
  return {reinterpret_cast<void* const*>(tables.front()), num_functions};
}

}  // namespace warren::xgboost
