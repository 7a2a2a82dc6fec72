#include "rabit_engine/xgboost/loaded_library.h"

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <functional>

namespace warren::xgboost {
namespace {

/// Converts an address, which the loader keeps as a number, to a pointer.
template <typename Type>
const Type* At(ElfW(Addr) address) {
  return reinterpret_cast<const Type*>(address);  // NOLINT(performance-no-int-to-ptr)
}

MemoryRange RangeOf(const dl_phdr_info& info, const ElfW(Phdr) & header) {
  const auto* begin = At<std::byte>(info.dlpi_addr + header.p_vaddr);
  return {begin, begin + header.p_memsz};
}

using Wanted = std::function<bool(const LoadedLibrary&)>;

}  // namespace

struct LibraryOfLoader {
  static LoadedLibrary Read(const dl_phdr_info& info) {
    LoadedLibrary library;
    library.path_ = info.dlpi_name;
    library.base_ = At<std::byte>(info.dlpi_addr);
    for (int i = 0; i < info.dlpi_phnum; ++i) {
      const auto& header = info.dlpi_phdr[i];
      if (header.p_type == PT_GNU_RELRO) library.image_.relocated = RangeOf(info, header);
      if (header.p_type == PT_DYNAMIC) {
        ReadDynamic(info, At<ElfW(Dyn)>(info.dlpi_addr + header.p_vaddr), library);
      }
      if (header.p_type != PT_LOAD || (header.p_flags & PF_R) == 0) continue;
      if ((header.p_flags & PF_X) != 0) {
        library.image_.executable.push_back(RangeOf(info, header));
        // Old linkers put constants next to the code.
        library.image_.read_only.push_back(RangeOf(info, header));
      } else if ((header.p_flags & PF_W) == 0) {
        library.image_.read_only.push_back(RangeOf(info, header));
      }
    }
    return library;
  }

  static void ReadDynamic(const dl_phdr_info& info, const ElfW(Dyn) * entry, LoadedLibrary& library) {
    for (; entry->d_tag != DT_NULL; ++entry) {
      // The loader turns these offsets into addresses, except for the kernel's library (vDSO).
      const ElfW(Addr) value = entry->d_un.d_ptr;
      const ElfW(Addr) address = value < info.dlpi_addr ? info.dlpi_addr + value : value;
      if (entry->d_tag == DT_SYMTAB) library.symbols_ = At<void>(address);
      if (entry->d_tag == DT_STRTAB) library.names_ = At<char>(address);
      if (entry->d_tag == DT_GNU_HASH) library.hashes_ = At<void>(address);
    }
  }

  static std::optional<LoadedLibrary> First(const Wanted& wanted) {
    struct Search {
      const Wanted& wanted;
      std::optional<LoadedLibrary> found;
    } search{wanted, std::nullopt};
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* data) {
          auto& [is_wanted, found] = *static_cast<Search*>(data);
          LoadedLibrary library = Read(*info);
          if (!is_wanted(library)) return 0;
          found = std::move(library);
          return 1;
        },
        &search);
    return search.found;
  }

  static bool Contains(const LoadedLibrary& library, const void* address) {
    for (const MemoryRange& range : library.image_.read_only) {
      if (range.Contains(address)) return true;
    }
    return false;
  }
};

std::optional<LoadedLibrary> LoadedLibrary::Containing(const void* address) {
  return LibraryOfLoader::First(
      [&](const LoadedLibrary& library) { return LibraryOfLoader::Contains(library, address); });
}

std::optional<LoadedLibrary> LoadedLibrary::Named(std::string_view begin_of_name) {
  return LibraryOfLoader::First([&](const LoadedLibrary& library) {
    const std::string_view path = library.path_;
    return path.substr(path.rfind('/') + 1).starts_with(begin_of_name);
  });
}

std::optional<LoadedLibrary> LoadedLibrary::Defining(std::string_view symbol) {
  static const char here = 0;
  return LibraryOfLoader::First([&](const LoadedLibrary& library) {
    return library.Find(symbol) != nullptr && !LibraryOfLoader::Contains(library, &here);
  });
}

void* LoadedLibrary::Find(std::string_view symbol) const {
  if (symbols_ == nullptr || names_ == nullptr || hashes_ == nullptr) return nullptr;
  const auto* const hashes = static_cast<const std::uint32_t*>(hashes_);
  const auto* const symbols = static_cast<const ElfW(Sym)*>(symbols_);
  const std::uint32_t num_buckets = hashes[0];
  const std::uint32_t first_symbol = hashes[1];
  const std::uint32_t* const buckets = hashes + 4 + hashes[2] * (sizeof(ElfW(Addr)) / sizeof(std::uint32_t));
  if (num_buckets == 0) return nullptr;
  std::uint32_t hash = 5381;
  for (const char c : symbol) hash = hash * 33 + static_cast<unsigned char>(c);
  std::uint32_t index = buckets[hash % num_buckets];
  if (index < first_symbol) return nullptr;
  for (;; ++index) {
    const std::uint32_t found = buckets[num_buckets + index - first_symbol];
    if ((found | 1) == (hash | 1) && symbol == names_ + symbols[index].st_name &&
        symbols[index].st_shndx != SHN_UNDEF) {
      return const_cast<std::byte*>(base_ + symbols[index].st_value);
    }
    if ((found & 1) != 0) return nullptr;
  }
}

}  // namespace warren::xgboost
