// Invalid calls of the C++ API fail with an error that names the rank, the call and the call site.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rabit/rabit.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rabit_engine/api/caller_function.h"

namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;

std::string Error(const std::function<void()>& function) {
  try {
    function();
  } catch (const dmlc::Error& error) {
    return error.what();
  }
  return "no error";
}

struct Empty : rabit::Serializable {
  void Load(rabit::Stream*) override {}
  void Save(rabit::Stream*) const override {}
};

void Keep(int& /*left*/, const int& /*right*/) {}

struct Case {
  std::string call;
  std::function<void()> make;
};

/// Every call that needs a job.
std::vector<Case> NeedsAJob() {
  static int value = 0;
  static std::string text;
  static std::vector<int> numbers(1);
  static Empty model;
  return {
      {"rabit::Allreduce", [] { rabit::Allreduce<rabit::op::Sum>(&value, 1); }},
      {"rabit::Allreduce", [] { rabit::Allreduce<rabit::op::Sum>(&value, 1, [] {}); }},
      {"rabit::Allreduce", [] { rabit::Reducer<int, Keep>().Allreduce(&value, 1); }},
      {"rabit::Broadcast", [] { rabit::Broadcast(&value, sizeof(value), 0); }},
      {"rabit::Broadcast", [] { rabit::Broadcast(&text, 0); }},
      {"rabit::Broadcast", [] { rabit::Broadcast(&numbers, 0); }},
      {"rabit::Allgather", [] { rabit::Allgather(&value, 1, 0, 1, 1); }},
      {"rabit::Allgather", [] { rabit::engine::Allgather(&value, 4, 0, 4, 4); }},
      {"rabit::LoadCheckPoint", [] { rabit::LoadCheckPoint(&model); }},
      {"rabit::CheckPoint", [] { rabit::CheckPoint(&model); }},
      {"rabit::LazyCheckPoint", [] { rabit::LazyCheckPoint(&model); }},
      {"rabit::LoadCheckPoint", [] { rabit::LoadCheckPoint(); }},
      {"rabit::CheckPoint", [] { rabit::CheckPoint(); }},
  };
}

void ExpectQuestionsAnswerAsAlone() {
  EXPECT_EQ(rabit::GetRank(), 0);
  EXPECT_EQ(rabit::GetWorldSize(), 1);
  EXPECT_EQ(rabit::GetRingPrevRank(), 0);
  EXPECT_EQ(rabit::VersionNumber(), 0);
  EXPECT_FALSE(rabit::IsDistributed());
  EXPECT_EQ(rabit::GetProcessorName(), "");
}

/// Must run in a process that has never called Init.
void CheckBeforeInit() {
  ExpectQuestionsAnswerAsAlone();
  for (const Case& call : NeedsAJob()) {
    EXPECT_THAT(Error(call.make),
                AllOf(HasSubstr("rank unknown: " + call.call), HasSubstr("called before Init")));
  }
  EXPECT_TRUE(rabit::Finalize());
  std::_Exit(testing::Test::HasFailure() ? 1 : 0);
}

TEST(BeforeInitDeathTest, QuestionsAnswerAsAJobOfOneWouldAndAllElseIsAnError) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // runs the test in a new process
  EXPECT_EXIT(CheckBeforeInit(), testing::ExitedWithCode(0), "");
}

TEST(AfterFinalize, QuestionsAnswerAsAJobOfOneWouldAndAllElseIsAnError) {
  rabit::Init(0, nullptr);
  EXPECT_TRUE(rabit::Finalize());
  ExpectQuestionsAnswerAsAlone();
  for (const Case& call : NeedsAJob()) {
    EXPECT_THAT(Error(call.make),
                AllOf(HasSubstr("rank 0: " + call.call), HasSubstr("called after Finalize")));
  }
  EXPECT_TRUE(rabit::Finalize());
}

TEST(BeforeInit, AJobOfOneIsNoJobOfMoreWorkersThatTheProgramAsksFor) {
  std::string size = "rabit_world_size=3";
  char* arguments[] = {size.data()};
  EXPECT_THAT(Error([&] { rabit::Init(1, arguments); }),
              HasSubstr("rabit_world_size=3, but this process has joined a world of 1 without a tracker"));
  size.back() = '1';
  EXPECT_EQ(Error([&] { rabit::Init(1, arguments); }), "no error");
  EXPECT_TRUE(rabit::Finalize());
}

TEST(BeforeInit, PrintsGoToTheStandardOutput) {
  testing::internal::CaptureStdout();
  rabit::TrackerPrint("alone\n");
  rabit::TrackerPrintf("%d\n", 17);
  std::fflush(stdout);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "alone\n17\n");
}

class Misuse : public testing::Test {
 protected:
  void SetUp() override { rabit::Init(0, nullptr); }
  void TearDown() override { rabit::Finalize(); }
};

TEST_F(Misuse, OfArgumentsIsAnErrorWithRankCallAndReason) {
  int value = 0;
  int* const nothing = nullptr;
  Empty model;
  const std::vector<std::pair<std::function<void()>, std::string>> table = {
      {[&] { rabit::Allreduce<rabit::op::Max>(nothing, 3); }, "Allreduce.*the buffer of 3 elements is NULL"},
      {[&] { rabit::Reducer<int, Keep>().Allreduce(nothing, 3); },
       "Allreduce.*the buffer of 3 elements is NULL"},
      {[&] { rabit::Allreduce<rabit::op::Max>(&value, ~std::size_t{0}); },
       "Allreduce.*more than memory can hold"},
      {[&] { rabit::engine::GetEngine()->Allreduce(&value, 4, 1, nullptr); }, "Allreduce.*function is NULL"},
      {[&] { rabit::engine::GetEngine()->Allreduce(&value, 0, 1, rabit::op::Reducer<rabit::op::Sum, int>); },
       "Allreduce.*elements of 0 bytes cannot be reduced"},
      {[&] {
         rabit::engine::GetEngine()->Allreduce(&value, std::size_t{1} << 31, 0,
                                               rabit::op::Reducer<rabit::op::Sum, int>);
       },
       "Allreduce.*elements of 2147483648 bytes cannot be reduced; at most 2147483647 can"},
      {[&] {
         rabit::engine::Allreduce_(&value, 4, 1, nullptr, static_cast<rabit::engine::mpi::DataType>(12),
                                   rabit::engine::mpi::kSum);
       },
       "Allreduce.*12 is not an element type.*"},
      {[&] {
         rabit::engine::Allreduce_(&value, 4, 1, nullptr, rabit::engine::mpi::kInt,
                                   static_cast<rabit::engine::mpi::OpType>(4));
       },
       "Allreduce.*4 is not an operation.*"},
      {[&] {
         rabit::engine::Allreduce_(&value, 4, 1, nullptr, rabit::engine::mpi::kFloat,
                                   rabit::engine::mpi::kBitwiseOR);
       },
       "Allreduce.*there is no bitwise or of float"},
      {[&] { rabit::Broadcast(&value, sizeof(value), 1); },
       "Broadcast.*root 1 is not a rank; ranks are 0 to 0"},
      {[&] { rabit::Broadcast(&value, sizeof(value), -1); }, "Broadcast.*root -1 is not a rank.*"},
      {[&] { rabit::Broadcast(nothing, 4, 0); }, "Broadcast.*the buffer of 4 bytes is NULL"},
      {[&] { rabit::Allgather(nothing, 4, 0, 4, 4); }, "Allgather.*the buffer of 4 elements is NULL"},
      {[&] { rabit::Allgather(&value, 1, 0, 2, 1); }, "Allgather.*the slices are not contiguous.*"},
      {[&] { rabit::engine::Allgather(&value, 4, 2, 1, 1); },
       "Allgather.*slice \\[2, 1\\) is not within 4 bytes"},
      {[&] { rabit::engine::Allgather(&value, 4, 0, 5, 1); },
       "Allgather.*slice \\[0, 5\\) is not within 4 bytes"},
      {[&] { rabit::LoadCheckPoint(nullptr, &model); }, "LoadCheckPoint.*the global model is NULL"},
      {[&] { rabit::CheckPoint(nullptr, &model); }, "CheckPoint.*the global model is NULL"},
      {[&] { rabit::LazyCheckPoint(nullptr); }, "LazyCheckPoint.*the global model is NULL"},
  };
  for (const auto& [make, expected] : table) {
    EXPECT_THAT(Error(make), MatchesRegex("rank 0: rabit::" + expected));
    // Each call gets a new job: non-contiguous slices are detected only after communication, and that error
    // ends the job.
    rabit::Finalize();
    rabit::Init(0, nullptr);
  }
}

TEST_F(Misuse, NamesThePlaceOfTheCall) {
  int value = 0;
  const int line = __LINE__ + 1;
  const std::string message = Error([&] { rabit::Broadcast(&value, sizeof(value), 5); });
  EXPECT_THAT(message, HasSubstr("misuse_test.cc:" + std::to_string(line) + " in operator()"));
  EXPECT_THAT(Error([&] { rabit::Broadcast(&value, sizeof(value), 5, "my key", 3, "me"); }),
              HasSubstr("rabit::Broadcast (my key:3 in me): "));
  EXPECT_THAT(Error([&] { rabit::Broadcast(&value, sizeof(value), 5, "N/A", -1, "N/A"); }),
              HasSubstr("rabit::Broadcast: "));
}

/// Grows when it is reduced. Takes 8 bytes more than its text.
struct Joined {
  std::string text;
  void Load(rabit::Stream& stream) { stream.Read(&text); }
  void Save(rabit::Stream& stream) const { stream.Write(text); }
  void Reduce(const Joined& right, std::size_t /*max_nbyte*/) { text += right.text; }
};

TEST_F(Misuse, OfASerializeReducerNamesTheSizeThatWasTooSmall) {
  rabit::SerializeReducer<Joined> reducer;
  Joined object{"0123456789"};
  EXPECT_EQ(Error([&] { reducer.Allreduce(&object, 18, 1); }), "no error");
  const int line = __LINE__ + 1;
  const std::string message = Error([&] { reducer.Allreduce(&object, 17, 1); });
  EXPECT_THAT(
      message,
      MatchesRegex("rank 0: rabit::SerializeReducer::Allreduce \\(.*misuse_test.cc:" + std::to_string(line) +
                   "\\): an object takes more than max_nbyte \\(17\\) bytes; results of Reduce "
                   "count, too"));
}

// Elements that are sent as their bytes; others do not compile in Broadcast, Allreduce, Allgather and
// Reducer.
static_assert(rabit::IsBytes_<double>::value && rabit::IsBytes_<std::pair<float, int>>::value);
static_assert(!rabit::IsBytes_<std::string>::value && !rabit::IsBytes_<std::vector<int>>::value);

TEST(SerializeReducer, RefusesAResultOfReduceThatIsTooLarge) {
  constexpr std::size_t kMaxBytes = 20;
  std::string left(kMaxBytes, '\0');
  std::string right(kMaxBytes, '\0');
  for (std::string* bytes : {&left, &right}) {
    rabit::utils::MemoryFixSizeBuffer stream(bytes->data(), kMaxBytes);
    Joined{"0123456789"}.Save(stream);
  }
  const MPI::Datatype type(kMaxBytes);
  EXPECT_THAT(Error([&] { rabit::SerializeReducerFunction_<Joined>(right.data(), left.data(), 1, type); }),
              HasSubstr("an object takes more than max_nbyte (20) bytes"));
}

TEST_F(Misuse, IsAnErrorOfTheStandardLibraryToo) {
  int value = 0;
  EXPECT_THROW(rabit::Broadcast(&value, sizeof(value), 5), std::runtime_error);
}

TEST_F(Misuse, IsNotToGiveNoBufferForNoElements) {
  int* const nothing = nullptr;
  EXPECT_EQ(Error([&] { rabit::Allreduce<rabit::op::Sum>(nothing, 0); }), "no error");
  EXPECT_EQ(Error([&] { rabit::Broadcast(nothing, 0, 0); }), "no error");
  EXPECT_EQ(Error([&] { rabit::Allgather(nothing, 0, 0, 0, 0); }), "no error");
}

TEST_F(Misuse, IsNotToInitTwice) {
  EXPECT_TRUE(rabit::Init(0, nullptr));
  EXPECT_TRUE(rabit::Finalize());
  EXPECT_TRUE(rabit::Finalize());
}

TEST_F(Misuse, IsNotToCallFromAnotherThreadThanInits) {
  std::string other;
  std::thread([&] {
    int value = 3;
    other = Error([&] { rabit::Allreduce<rabit::op::Sum>(&value, 1); });
  }).join();
  EXPECT_EQ(other, "no error");
}

/// An object whose destructor calls GetRank and GetWorldSize. If the object is static, its destructor runs
/// after those of the main thread's thread-local objects.
struct AsksLate {
  ~AsksLate() {
    if (rabit::GetRank() != 0 || rabit::GetWorldSize() != 1) std::_Exit(2);
  }
};

TEST(EndOfProgramDeathTest, WithoutFinalizeLeavesQuestionsToDestructors) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        static const AsksLate late;
        rabit::Init(0, nullptr);
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Threads, ThatCalledInitHaveTheirOwnRankAndAStrangerIsAskedWhoseItMeans) {
  rabit::Init(0, nullptr);
  std::string stranger;
  std::thread([&] {
    rabit::Init(0, nullptr);
    rabit::CheckPoint();
    EXPECT_EQ(rabit::VersionNumber(), 1);
    std::thread([&] { stranger = Error([] { rabit::CheckPoint(); }); }).join();
    rabit::Finalize();
  }).join();
  EXPECT_EQ(rabit::VersionNumber(), 0);
  EXPECT_THAT(stranger, HasSubstr("called in a thread that has not called Init"));
  rabit::Finalize();
}

}  // namespace
