// The search for a class's vtable in a library image built by hand, and its errors.
#include "rabit_engine/xgboost/vtable.h"

#include <gmock/gmock.h>

#include <array>
#include <cstring>
#include <string>

#include "rabit_engine/xgboost/loaded_library.h"

namespace warren::xgboost {
namespace {

using testing::HasSubstr;

constexpr const char* kType = "N3foo3BarE";

/// A library with constants (the type's name at offset 8), code, and words written by the loader: the type
/// information in words 4 and 5, and the table of 3 functions from word 10 on.
struct Library {
  alignas(8) std::array<char, 64> constants{};
  alignas(8) std::array<char, 64> code{};
  std::array<const void*, 32> words{};

  Library() {
    std::strcpy(&constants[8], kType);
    words[4] = &code[0];
    words[5] = &constants[8];
    words[11] = &words[4];
    for (int i = 0; i < 3; ++i) words[12 + i] = &code[8 * i];
  }
  LibraryImage image() const {
    LibraryImage image;
    const auto range = [](const auto& array) {
      const auto* begin = reinterpret_cast<const std::byte*>(array.data());
      return MemoryRange{begin, begin + sizeof(array)};
    };
    image.read_only = {range(constants)};
    image.executable = {range(code)};
    image.relocated = range(words);
    return image;
  }
  std::string Refused() const {
    try {
      FindVtable(image(), kType, 3);
    } catch (const Refusal& refusal) {
      return refusal.what();
    }
    return "(found)";
  }
};

TEST(Vtable, IsFoundByTheNameOfItsType) {
  const Library library;
  const auto table = FindVtable(library.image(), kType, 3);
  EXPECT_EQ(static_cast<const void*>(table.data()), &library.words[12]);
  EXPECT_EQ(table.size(), 3U);
}

TEST(Vtable, OfATypeThatDerivesFromItIsAnother) {
  Library library;
  library.words[20] = &library.code[0];  // type information of a derived type: its table, name and base
  library.words[21] = &library.constants[0];
  library.words[22] = &library.words[4];
  EXPECT_EQ(library.Refused(), "(found)");
}

TEST(Vtable, OfALongerNameIsAnother) {
  Library library;
  std::strcpy(&library.constants[8], "N3foo3BarEx");
  EXPECT_THAT(library.Refused(), HasSubstr("it has no class of the type N3foo3BarE"));
}

TEST(Vtable, ThatIsThereTwiceIsRefused) {
  Library library;
  for (int i = 0; i < 5; ++i) library.words[20 + i] = library.words[10 + i];
  EXPECT_THAT(library.Refused(),
              HasSubstr("it has 2 tables of virtual functions of N3foo3BarE, where one was expected"));
}

TEST(Vtable, ThatIsNotThereIsRefused) {
  Library library;
  library.words[11] = nullptr;
  EXPECT_THAT(library.Refused(), HasSubstr("it has no tables of virtual functions"));
}

TEST(Vtable, WithAFunctionOutsideTheCodeIsRefused) {
  for (const void* const outside : {static_cast<const void*>(nullptr), static_cast<const void*>(kType)}) {
    Library library;
    library.words[14] = outside;
    EXPECT_THAT(library.Refused(), HasSubstr("not all 3 virtual functions of N3foo3BarE lie in its code"));
  }
}

TEST(Vtable, WhoseEndIsMissingIsRefused) {
  const Library library;
  LibraryImage image = library.image();
  image.relocated.end = reinterpret_cast<const std::byte*>(&library.words[14]);
  EXPECT_THROW(FindVtable(image, kType, 3), Refusal);
}

TEST(Vtable, OfALibraryWithoutSuchMemoryIsRefused) {
  const Library library;
  LibraryImage image = library.image();
  image.relocated = {};
  EXPECT_THROW(FindVtable(image, kType, 3), Refusal);
  image = library.image();
  image.read_only.clear();
  EXPECT_THROW(FindVtable(image, kType, 3), Refusal);
  image = library.image();
  image.executable.clear();
  EXPECT_THROW(FindVtable(image, kType, 3), Refusal);
}

TEST(Vtable, NamesAtTheEndOfMemoryAreNotReadBeyondIt) {
  Library library;
  LibraryImage image = library.image();
  image.read_only.front().end = reinterpret_cast<const std::byte*>(&library.constants[8]) + 5;
  EXPECT_THROW(FindVtable(image, kType, 3), Refusal);
}

TEST(LoadedLibrary, FindsWhatALibraryDefines) {
#ifdef _LIBCPP_VERSION
  const auto library = LoadedLibrary::Named("libc++abi.so");
#else
  const auto library = LoadedLibrary::Named("libstdc++.so");
#endif
  ASSERT_TRUE(library);
  void* const terminate = library->Find("_ZSt9terminatev");
  ASSERT_NE(terminate, nullptr);
  EXPECT_EQ(library->Find("_ZSt9terminatevx"), nullptr);
  EXPECT_EQ(library->Find("memcpy"), nullptr) << "what it takes from others";
  const auto same = LoadedLibrary::Containing(terminate);
  ASSERT_TRUE(same);
  EXPECT_EQ(same->path(), library->path());
  EXPECT_EQ(LoadedLibrary::Defining("_ZSt9terminatev")->path(), library->path());
  EXPECT_FALSE(LoadedLibrary::Defining("_ZSt9terminatevx"));
  EXPECT_FALSE(LoadedLibrary::Named("libnone.so"));
}

}  // namespace
}  // namespace warren::xgboost
