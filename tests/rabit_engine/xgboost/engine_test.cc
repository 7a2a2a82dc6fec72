// XGBoost on this engine, with stand-ins for XGBoost: two ranks in two processes, each with its own library.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <thread>

#include "rabit_engine/xgboost/coll_engine.h"

namespace warren::xgboost {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// A stand-in for libxgboost, loaded into this process.
class StandIn {
 public:
  StandIn(const std::string& variant, int socket, int rank) {
    const std::string path = std::string(WARREN_STAND_INS) + "/libxgboost_stand_in_" + variant + ".so";
    library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) throw std::runtime_error(dlerror());
    Function<void(int, int)>("StandInConnect")(socket, rank);
  }
  template <typename Signature>
  Signature* Function(const char* name) const {
    return reinterpret_cast<Signature*>(dlsym(library_, name));
  }
  const void* address() const { return dlsym(library_, "XGCommunicatorGetRank"); }

  int Allreduce(std::int64_t* values, std::size_t count, int op = 2) const {
    return Function<int(void*, std::size_t, int, int)>("XGCommunicatorAllreduce")(values, count, 7, op);
  }
  std::string last_error() const { return Function<const char*()>("XGBGetLastError")(); }

 private:
  void* library_;
};

using OfRank = std::function<std::string(const StandIn& xgboost, int rank)>;

/// Runs `of_rank` in a process per rank. Returns each rank's result, which is empty if the rank exits early
/// and begins with "threw: " if `of_rank` throws.
std::array<std::string, 2> InTwoRanks(const std::string& variant, const OfRank& of_rank) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) throw std::runtime_error("no socket pair");
  std::array<int, 2> outputs{};
  std::array<pid_t, 2> processes{};
  for (int rank = 0; rank < 2; ++rank) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe");
    processes[rank] = fork();
    if (processes[rank] == 0) {
      close(ends[0]);
      close(sockets[1 - rank]);
      std::string said;
      try {
        said = of_rank(StandIn(variant, sockets[rank], rank), rank);
      } catch (const std::exception& error) {
        said = std::string("threw: ") + error.what();
      }
      const bool whole = write(ends[1], said.data(), said.size()) == static_cast<ssize_t>(said.size());
      _exit(whole ? 0 : 1);
    }
    close(ends[1]);
    outputs[rank] = ends[0];
  }
  close(sockets[0]);
  close(sockets[1]);
  std::array<std::string, 2> said;
  for (int rank = 0; rank < 2; ++rank) {
    char buffer[4096];
    for (ssize_t bytes = 0; (bytes = read(outputs[rank], buffer, sizeof(buffer))) > 0;) {
      said[rank].append(buffer, static_cast<std::size_t>(bytes));
    }
    close(outputs[rank]);
    waitpid(processes[rank], nullptr, 0);
  }
  return said;
}

/// Returns each rank's reason for not serving XGBoost, or another message if the engine serves it or
/// XGBoost's own functions no longer work.
std::array<std::string, 2> WhyNot(
    const std::string& variant, const std::function<void(int rank)>& before = [](int) {}) {
  return InTwoRanks(variant, [&](const StandIn& xgboost, int rank) -> std::string {
    before(rank);
    const Beginning beginning = Begin(xgboost.address());
    if (beginning.serves) return "it serves";
    std::int64_t value = rank + 1;
    if (xgboost.Allreduce(&value, 1) != 0 || value != 3 || NumServed() > 4)
      return "XGBoost's own does not work any more";
    return beginning.why_not;
  });
}

class EveryConvention : public testing::TestWithParam<std::string> {};

TEST_P(EveryConvention, IsServed) {
  const auto said = InTwoRanks(GetParam(), [](const StandIn& xgboost, int rank) -> std::string {
    if (const std::string objections = Objections(xgboost.address()); !objections.empty()) return objections;
    const Beginning beginning = Begin(xgboost.address());
    if (!beginning.serves) return beginning.why_not;
    const std::uint64_t before = NumServed();
    std::array<std::int64_t, 2> values{rank, 10};
    if (xgboost.Allreduce(values.data(), values.size()) != 0 ||
        values != std::array<std::int64_t, 2>{1, 20}) {
      return "wrong sums";
    }
    const std::string own = rank == 0 ? "abc" : "de";
    const std::array<std::int64_t, 2> sizes{3, 2};
    std::array<std::int64_t, 3> segments{-1, -1, -1};
    std::string received(5, '?');
    const auto allgather_v =
        xgboost
            .Function<int(const char*, std::size_t, const std::int64_t*, std::int64_t*, char*, std::size_t)>(
                "StandInAllgatherV");
    if (allgather_v(own.data(), own.size(), sizes.data(), segments.data(), received.data(),
                    received.size()) != 0) {
      return xgboost.last_error();
    }
    if (received != "abcde" || segments != std::array<std::int64_t, 3>{0, 3, 5})
      return "wrong gathered: " + received;
    if (NumServed() != before + 2) return "not served";
    End(false);
    std::int64_t value = rank + 1;
    if (xgboost.Allreduce(&value, 1) != 0 || value != 3 || NumServed() != before + 2)
      return "served after the end";
    // The engine can serve a second time.
    if (!Begin(xgboost.address()).serves) return "a second time it is refused";
    value = rank + 1;
    if (xgboost.Allreduce(&value, 1) != 0 || value != 3 || NumServed() != before + 2 + 4 + 1)
      return "not served again";
    End(false);
    return "well";
  });
  EXPECT_THAT(said, testing::Each("well"));
}

INSTANTIATE_TEST_SUITE_P(XgboostEngine, EveryConvention,
                         testing::Values("by_reference", "by_value", "with_context"),
                         [](const auto& info) { return info.param; });

TEST(XgboostEngine, CallsThatAreNotItsOwnStayWithXgboost) {
  const auto said = InTwoRanks("with_context", [](const StandIn& xgboost, int rank) -> std::string {
    if (!Begin(xgboost.address()).serves) return "refused";
    const std::uint64_t before = NumServed();
    std::int64_t value = rank + 1;
    const auto of_other = xgboost.Function<int(std::int64_t*)>("StandInAllreduceOfOther");
    if (of_other(&value) != 0 || value != 3) return "another communicator does not work";
    std::thread([&] {
      value = rank + 1;
      xgboost.Allreduce(&value, 1);
    }).join();
    if (value != 3) return "another thread does not work";
    if (NumServed() != before) return "served";
    // The engine does not support half precision: the stand-in's own function leaves the value unchanged.
    std::int16_t half = 7;
    const auto allreduce = xgboost.Function<int(void*, std::size_t, int, int)>("XGCommunicatorAllreduce");
    if (allreduce(&half, 1, 0, 2) != 0 || half != 7 || NumServed() != before) return "served half precision";
    // If XGBoost finalizes the communicator without notifying the engine, the engine must no longer serve
    // calls on this communicator: the other ranks may be gone.
    xgboost.Function<void()>("StandInFinalize")();
    value = rank + 1;
    if (xgboost.Allreduce(&value, 1) != 0 || value != 3 || NumServed() != before)
      return "served after finalize";
    End(false);
    return "well";
  });
  EXPECT_THAT(said, testing::Each("well"));
}

TEST(XgboostEngine, ARankThatDiesIsNamed) {
  const auto said = InTwoRanks("with_context", [](const StandIn& xgboost, int rank) -> std::string {
    if (!Begin(xgboost.address()).serves) return "refused";
    if (rank == 1) _exit(0);
    std::int64_t value = 1;
    if (xgboost.Allreduce(&value, 1) == 0) return "it went well";
    const std::string first = xgboost.last_error();
    if (xgboost.Allreduce(&value, 1) == 0) return "it went well then";
    return first + "\n" + xgboost.last_error();
  });
  EXPECT_THAT(said[0], StartsWith("XGBoost's allreduce, over Warren's engine: rank 0"));
  EXPECT_THAT(said[0], HasSubstr("rank 1"));
  EXPECT_THAT(said[0], HasSubstr("\nXGBoost's allreduce, over Warren's engine: an earlier call has failed"));
}

TEST(XgboostEngine, ARankThatGivesUpIsNotWaitedFor) {
  const auto said = InTwoRanks("with_context", [](const StandIn& xgboost, int rank) -> std::string {
    if (!Begin(xgboost.address()).serves) return "refused";
    if (rank == 1) {
      End(true);
      return "gave up";
    }
    std::int64_t value = 1;
    return xgboost.Allreduce(&value, 1) == 0 ? "it went well" : xgboost.last_error();
  });
  EXPECT_THAT(said[0], HasSubstr("rank 1"));
  EXPECT_EQ(said[1], "gave up");
}

struct Doubt {
  const char* variant;
  const char* why;
};
void PrintTo(const Doubt& doubt, std::ostream* out) {
  *out << doubt.variant;
}

class EveryDoubt : public testing::TestWithParam<Doubt> {};

TEST_P(EveryDoubt, LeavesBothRanksOnXgboostsOwn) {
  const auto [variant, why] = GetParam();
  const auto said = WhyNot(variant);
  EXPECT_THAT(said[0], StartsWith("rank 0: "));
  EXPECT_THAT(said[0], HasSubstr(why));
  EXPECT_EQ(said[1], said[0]);
}

INSTANTIATE_TEST_SUITE_P(
    XgboostEngine, EveryDoubt,
    testing::Values(Doubt{"without_types", "it has no class of the type N7xgboost10collective4CollE"},
                    Doubt{"two_tables",
                          "it has 2 tables of virtual functions of N7xgboost10collective4CollE"},
                    Doubt{"function_outside",
                          "not all 7 virtual functions of N7xgboost10collective4CollE lie in its code"},
                    Doubt{"without_table", "its collective calls do not use the functions of its class Coll"},
                    Doubt{"newer_convention", "it passes the arguments of an allreduce in an unknown way"},
                    Doubt{"moved_fields", "the communicator that it calls with has an unknown layout"},
                    Doubt{"wrong_results", "gave a wrong result"}),
    [](const auto& info) { return info.param.variant; });

TEST(XgboostEngine, ADoubtOfOneRankIsEverybodys) {
  const auto said = WhyNot("with_context", [](int rank) {
    if (rank == 1) setenv("WARREN_SHARED_MEMORY", "thrice", 1);
  });
  EXPECT_THAT(said[0], StartsWith("rank 1: "));
  EXPECT_THAT(said[0], HasSubstr("thrice"));
  EXPECT_EQ(said[1], said[0]);
}

TEST(XgboostEngine, ARankThatCannotJoinIsNotWaitedFor) {
  // An unknown algorithm is not an error when the setting is read, only when it is used.
  const auto said = WhyNot("with_context", [](int rank) {
    if (rank == 1) setenv("WARREN_ALGORITHM", "magic", 1);
  });
  EXPECT_THAT(said[0], StartsWith("rank 1: "));
  EXPECT_THAT(said[0], HasSubstr("'magic' is not known"));
  EXPECT_EQ(said[1], said[0]);
}

TEST(XgboostEngine, WithoutAFunctionOfItsApiThereIsNobodyToAgreeWith) {
  const auto said = InTwoRanks("without_function", [](const StandIn& xgboost, int /*rank*/) {
    return Objections(xgboost.address()) + "; " + Begin(xgboost.address()).why_not;
  });
  EXPECT_EQ(said[0], "it has no XGCommunicatorAllgather; it has no XGCommunicatorAllgather");
  EXPECT_EQ(said[1], said[0]);
}

TEST(XgboostEngine, AnAddressOfNoLibraryIsRefused) {
  const auto memory = std::make_unique<int>(0);
  EXPECT_EQ(Objections(memory.get()), "no library of this process contains it");
  EXPECT_EQ(Begin(nullptr).why_not, "no library of this process contains it");
}

TEST(XgboostEngine, TheEndWithoutABeginningDoesNothing) {
  End(false);
  End(true);
}

}  // namespace
}  // namespace warren::xgboost
