#include "wire/variables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>

namespace warren::wire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Environment = std::map<std::string, std::string>;

LookUp In(Environment environment) {
  return [environment = std::move(environment)](const char* name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
  };
}

// These names are used in users' scripts and manifests, so none may be removed.
constexpr std::pair<const char*, const char*> kFormerNames[] = {
    {"RABIT_TLS", "WARREN_TLS"},
    {"RABIT_ENGINE", "WARREN_ENGINE"},
    {"RABIT_BOOTSTRAP", "WARREN_BOOTSTRAP"},
    {"RABIT_SHARED_MEMORY", "WARREN_SHARED_MEMORY"},
    {"RABIT_HOST_GROUP", "WARREN_HOST_GROUP"},
    {"RABIT_REPRODUCIBLE", "WARREN_REPRODUCIBLE"},
    {"RABIT_ALGORITHM", "WARREN_ALGORITHM"},
    {"RABIT_PRINT_CHOICE", "WARREN_PRINT_CHOICE"},
    {"RABIT_CONNECT_TIMEOUT", "WARREN_CONNECT_TIMEOUT"},
    {"RABIT_HOST_TIMEOUT", "WARREN_HOST_TIMEOUT"},
    {"RABIT_MPI_LIBRARY", "WARREN_MPI_LIBRARY"},
    {"RABIT_BOOTSTRAP_HOST", "WARREN_BOOTSTRAP_HOST"},
    {"RABIT_BOOTSTRAP_PORT", "WARREN_BOOTSTRAP_PORT"},
    {"RABIT_BOOTSTRAP_TOKEN", "WARREN_BOOTSTRAP_TOKEN"},
    {"RABIT_CUDA_LIBRARY", "WARREN_CUDA_LIBRARY"},
    {"RABIT_NCCL_PATH", "WARREN_NCCL_PATH"},
    {"RABIT_DEVICE_PATH", "WARREN_DEVICE_PATH"},
};

TEST(Variables, AreStillFoundUnderTheirFormerNames) {
  for (const auto& [former, name] : kFormerNames) {
    const auto found = FindVariable(name, In({{former, "x"}}));
    ASSERT_TRUE(found) << former;
    EXPECT_STREQ(found->name, former);
    EXPECT_EQ(found->value, "x");
  }
}

TEST(Variables, TheNewNameComesFirst) {
  for (const auto& [former, name] : kFormerNames) {
    const auto found = FindVariable(name, In({{former, "x"}, {name, "y"}}));
    ASSERT_TRUE(found) << name;
    EXPECT_STREQ(found->name, name);
    EXPECT_EQ(found->value, "y");
  }
}

TEST(Variables, WithoutAFormerNameAreFoundUnderTheirOwnOnly) {
  EXPECT_FALSE(FindVariable("WARREN_TIMELINE", In({{"RABIT_TIMELINE", "x"}})));
  EXPECT_EQ(FindVariable("WARREN_TIMELINE", In({{"WARREN_TIMELINE", "x"}}))->value, "x");
  EXPECT_EQ(FindVariable("NOT_IN_THE_TABLE", In({{"NOT_IN_THE_TABLE", "x"}}))->value, "x");
}

TEST(Variables, ThatContradictEachOtherAreNamedWithoutTheirValues) {
  EXPECT_THAT(ContradictingNames(In({{"WARREN_TLS", "1"}, {"RABIT_TLS", "1"}, {"RABIT_ENGINE", "mpi"}})),
              IsEmpty());
  EXPECT_THAT(
      ContradictingNames(In({{"WARREN_BOOTSTRAP_TOKEN", "secret"}, {"RABIT_BOOTSTRAP_TOKEN", "word"}})),
      ElementsAre(
          "WARREN_BOOTSTRAP_TOKEN and its old name RABIT_BOOTSTRAP_TOKEN are set to different values; using WARREN_BOOTSTRAP_TOKEN"));
}

TEST(Variables, HaveNamesOfTheirOwnAndSayWhatTheyAre) {
  std::set<std::string> names;
  for (const Variable& variable : Variables()) {
    EXPECT_TRUE(names.insert(variable.name).second) << variable.name;
    if (variable.former != nullptr) {
      EXPECT_TRUE(names.insert(variable.former).second) << variable.former;
    }
    for (const std::string_view text :
         {variable.group, variable.values, variable.default_value, variable.meaning, variable.reader}) {
      EXPECT_FALSE(text.empty()) << variable.name;
      EXPECT_EQ(text.find('|'), std::string_view::npos)
          << variable.name << ": ends a cell of the page's table";
    }
  }
}

TEST(Variables, MakeAPage) {
  EXPECT_THAT(VariablesMarkdown(),
              HasSubstr("| `WARREN_SHARED_MEMORY` | `RABIT_SHARED_MEMORY` | auto or off | auto | "));
}

}  // namespace
}  // namespace warren::wire
