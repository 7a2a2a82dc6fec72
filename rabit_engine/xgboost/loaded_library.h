// A library of this process as the loader sees it: its memory ranges and its exported symbols. Inspecting a
// library calls none of its code. In particular, it does not run the library's constructors again, as dlopen
// would if the destructors have run.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace warren::xgboost {

/// The bytes [begin, end) of this process's memory.
struct MemoryRange {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;

  bool Contains(const void* address) const { return begin <= address && address < end; }
};

/// The memory ranges of a loaded library.
struct LibraryImage {
  std::vector<MemoryRange> read_only;   ///< constants, and code, next to which old linkers put constants
  std::vector<MemoryRange> executable;  ///< code
  /// Constants that contain addresses written by the loader (PT_GNU_RELRO); may be empty.
  MemoryRange relocated;
};

class LoadedLibrary {
 public:
  /// Returns the library whose code or constants contain this address.
  static std::optional<LoadedLibrary> Containing(const void* address);
  /// Returns the first library whose file name begins with `begin_of_name`, e.g. "libxgboost.so".
  static std::optional<LoadedLibrary> Named(std::string_view begin_of_name);
  /// Returns the first library that exports this symbol, except the library that contains this function.
  static std::optional<LoadedLibrary> Defining(std::string_view symbol);

  /// Returns the address of the exported symbol, or null if it is not exported. Reads the library's hash
  /// table (DT_GNU_HASH); without that table, no symbol is found.
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
