// A job's notes, and the file that keeps them.
#include "tracker/note.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tracker/state_file.h"

namespace warren::tracker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Kind = Note::Kind;

const Note kAll[] = {
    {.kind = Kind::kWorld, .rank = 4},
    {.kind = Kind::kAssigned, .rank = 3, .task_id = "7", .host = "10.0.0.1"},
    {.kind = Kind::kAssigned, .rank = 0, .task_id = "a %b\n\xff", .host = ""},
    {.kind = Kind::kUnassigned, .rank = 3},
    {.kind = Kind::kLinked, .rank = 3, .peers = {}},
    {.kind = Kind::kLinked, .rank = 3, .peers = {0, 2}},
    {.kind = Kind::kListens, .rank = 3, .port = 40123, .peers = {1}},
    {.kind = Kind::kShutDown, .rank = 1},
    {.kind = Kind::kReturned, .rank = 1},
    {.kind = Kind::kMember, .rank = 0, .task_id = "a b", .host = "10.0.0.1"},
    {.kind = Kind::kBroken, .rank = 3},
    {.kind = Kind::kVouched, .task_id = "", .host = "10.0.0.1", .ticket = "k3J9fQz81Lw-0_ab"},
    {.kind = Kind::kGeneration, .rank = 7},
    {.kind = Kind::kEntered, .rank = 1, .task_id = "2", .host = "10.0.0.1"},
    {.kind = Kind::kEnded, .rank = 7},
    {.kind = Kind::kDone, .rank = 7},
    {.kind = Kind::kResumed, .rank = 7}};

TEST(Note, IsWhatItWasAfterBeingWrittenDown) {
  for (const Note& note : kAll) {
    const std::string line = Encode(note);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    EXPECT_EQ(DecodeNote(line), note) << line;
  }
  EXPECT_EQ(Encode(kAll[6]), "listens 3 40123 1");
}

TEST(Note, RefusesWhatIsNone) {
  for (const char* line : {"", "listens", "listens 3", "listens 3 x", "world -1", "world 4 5", "worlds 4",
                           "assigned 3 %4 h", "assigned 3 %zz h", "assigned 3 t", "linked 3 0,1"}) {
    EXPECT_THAT([&] { DecodeNote(line); },
                ThrowsMessage<std::invalid_argument>(HasSubstr("is not a valid entry")))
        << line;
  }
}

class StateFileTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove(path); }
  void TearDown() override { std::filesystem::remove(path); }
  void Put(const std::string& text) { std::ofstream(path) << text; }
  std::string Content() const {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static auto Refuses(const std::string& what) { return ThrowsMessage<std::runtime_error>(HasSubstr(what)); }

  std::string path = testing::TempDir() + "/state-" + std::to_string(getpid());
};

TEST_F(StateFileTest, GivesTheNextTrackerWhatTheLastOneKnew) {
  const wire::JobToken token = wire::JobToken::Random();
  {
    StateFile file(path);
    EXPECT_FALSE(file.begun());
    EXPECT_EQ(file.Begin(9091, "1:4", token), "");
    for (const Note& note : kAll) EXPECT_EQ(file.Add(note), "");
  }
  StateFile file(path);
  EXPECT_TRUE(file.begun());
  EXPECT_EQ(file.port(), 9091);
  EXPECT_EQ(file.token(), token);
  EXPECT_EQ(file.workers(), "1:4");
  EXPECT_EQ(file.notes(), std::vector<Note>(std::begin(kAll), std::end(kAll)));
}

TEST_F(StateFileTest, LeavesOutALineThatWasCutOff) {
  Put("warren-tracker-state 1 port 9091 workers 4\nworld 4\nshutd");
  {
    StateFile file(path);
    EXPECT_THAT(file.notes(), ElementsAre(Note{.kind = Kind::kWorld, .rank = 4}));
    EXPECT_EQ(file.Add({.kind = Kind::kShutDown, .rank = 2}), "");
  }
  EXPECT_EQ(Content(), "warren-tracker-state 1 port 9091 workers 4\nworld 4\nshutdown 2\n");
}

TEST_F(StateFileTest, BeginsAnewWhenEvenTheHeaderWasCutOff) {
  Put("warren-tracker-state 1 po");
  StateFile file(path);
  EXPECT_FALSE(file.begun());
  EXPECT_EQ(Content(), "");
}

TEST_F(StateFileTest, DoesNotTouchWhatIsSomethingElse) {
  for (const char* text : {"my thesis\n", "my thesis", "warren-tracker-state 2 port 9091 workers 4\n",
                           "warren-tracker-state 1 port 9091 workers 4 x\n"}) {
    Put(text);
    EXPECT_THAT([&] { StateFile file(path); }, Refuses("it is not a tracker's state file")) << text;
    EXPECT_EQ(Content(), text);
  }
  Put("warren-tracker-state 1 port 9091 workers 4\nworld 4\nnonsense\n");
  EXPECT_THAT([&] { StateFile file(path); }, Refuses("line 3: 'nonsense' is not a valid entry"));
}

TEST_F(StateFileTest, BelongsToOneTrackerAtATime) {
  const StateFile file(path);
  EXPECT_THAT([&] { StateFile other(path); }, Refuses("another tracker is using it"));
}

/// Limits the size of files that this process writes: writes beyond the limit fail, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, SIG_DFL);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
};

TEST_F(StateFileTest, OutlivesAFullDiskAndIsCompleteAgainAfterwards) {
  const Note world{.kind = Kind::kWorld, .rank = 4};
  const Note shut_down{.kind = Kind::kShutDown, .rank = 2};
  {
    StateFile file(path);
    ASSERT_EQ(file.Begin(9091, "4", wire::JobToken::Random()), "");
    const std::string header = Content();
    {
      const FileSizeLimit limit(header.size() + 3);  // in the middle of the next line
      EXPECT_THAT(file.Add(world), HasSubstr("'" + path + "': File too large; the job goes on"));
      EXPECT_EQ(file.Add(shut_down), "") << "was said before";
    }
    EXPECT_EQ(file.Add(shut_down), "the state file '" + path + "' is complete again");
    EXPECT_EQ(Content(), header + "world 4\nshutdown 2\nshutdown 2\n");
  }
  EXPECT_THAT(StateFile(path).notes(), ElementsAre(world, shut_down, shut_down));
}

TEST_F(StateFileTest, IsNotTakenOverWhileItIsIncomplete) {
  {
    StateFile file(path);
    ASSERT_EQ(file.Begin(9091, "4", wire::JobToken::Random()), "");
    const FileSizeLimit limit(Content().size());
    EXPECT_NE(file.Add({.kind = Kind::kWorld, .rank = 4}), "");
  }
  EXPECT_THAT([&] { StateFile file(path); }, Refuses("it lacks the events from while its disk was full"));
}

TEST_F(StateFileTest, OutlivesADiskThatIsFullFromTheStart) {
  {
    StateFile file(path);
    const FileSizeLimit limit(0);
    EXPECT_NE(file.Begin(9091, "4", wire::JobToken::Random()), "");
    EXPECT_EQ(file.Add({.kind = Kind::kWorld, .rank = 4}), "");
  }
  EXPECT_FALSE(StateFile(path).begun());
}

TEST_F(StateFileTest, NamesTheFileThatCannotBeMade) {
  EXPECT_THAT([&] { StateFile file("/no/such/folder/state"); },
              Refuses("'/no/such/folder/state': No such file"));
}

}  // namespace
}  // namespace warren::tracker
