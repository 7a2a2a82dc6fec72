// A library of this process as the loader has it: where its memory is and what it defines. Nothing of it is
// called, and its constructors are not run, as dlopen does with one that has been through its destructors.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace warren::xgboost {

/// Bytes [begin, end) of this process.
struct MemoryRange {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;

  bool Contains(const void* address) const { return begin <= address && address < end; }
  std::size_t size() const { return static_cast<std::size_t>(end - begin); }
};

/// Where a library's parts are.
struct LibraryImage {
  std::vector<MemoryRange> read_only;   ///< constants
  std::vector<MemoryRange> executable;  ///< code
  MemoryRange
      relocated;  ///< constants with addresses in them, which the loader wrote (PT_GNU_RELRO); may be empty
};

class LoadedLibrary {
 public:
  /// The one that this address lies in.
  static std::optional<LoadedLibrary> Containing(const void* address);
  /// The first whose file's name begins like this: "libxgboost.so".
  static std::optional<LoadedLibrary> Named(std::string_view begin_of_name);
  /// The first that defines this symbol for others, the one with this code left out.
  static std::optional<LoadedLibrary> Defining(std::string_view symbol);

  /// The address of what it defines for others under this name; null: nothing. Reads the loader's hash table
  /// (DT_GNU_HASH), without which it finds nothing.
  void* Find(std::string_view symbol) const;

  const std::string& path() const { return path_; }
  const LibraryImage& image() const { return image_; }

 private:
  std::string path_;
  LibraryImage image_;
  const std::byte* base_ = nullptr;
  const void* symbols_ = nullptr;  ///< DT_SYMTAB
  const char* names_ = nullptr;    ///< DT_STRTAB
  const void* hashes_ = nullptr;   ///< DT_GNU_HASH

  friend struct LibraryOfLoader;
};

}  // namespace warren::xgboost
