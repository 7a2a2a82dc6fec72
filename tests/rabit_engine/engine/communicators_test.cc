// Communicators made from other communicators, with ranks as threads of one process.
#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rabit_engine/base/error.h"
#include "tests/rabit_engine/base/no_descriptor_left.h"
#include "tests/rabit_engine/engine/random_program.h"
#include "tests/rabit_engine/engine/thread_world.h"
#include "tests/rabit_engine/engine/worlds.h"

namespace warren::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string MessageOf(const std::function<void()>& function) {
  try {
    function();
  } catch (const EngineError& error) {
    return error.what();
  }
  return "no error";
}

class Communicators : public ::testing::TestWithParam<WorldCase> {};

TEST_P(Communicators, OfEveryShapeGiveWhatAPlainComputationGives) {
  const WorldCase& world = GetParam();
  for (std::uint64_t seed = 1; seed <= testing::NumPrograms(6) && !HasFailure(); ++seed) {
    ThreadWorld(world.size).Run(SettingsOf(world.places), [seed](NativeCommunicator& communicator) {
      RandomProgram(seed, communicator).Run(60);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, Communicators, ::testing::ValuesIn(EveryWorld()), NameOfCase);

Reduction FloatSum() {
  return Reduction::Typed(DataType::kFloat, ReduceOp::kSum);
}

TEST(Split, RanksOfOneColorAreOrderedByTheirKeys) {
  ThreadWorld(4).Run(Settings{}, [](NativeCommunicator& world) {
    const auto half = world.Split(world.rank() % 2, -world.rank());
    EXPECT_EQ(half->world_size(), 2);
    EXPECT_EQ(half->rank(), world.rank() < 2 ? 1 : 0);
    EXPECT_EQ(half->rank_in_job(0), world.rank() % 2 + 2);
  });
}

TEST(Split, ANegativeColorMakesNone) {
  ThreadWorld(3).Run(Settings{}, [](NativeCommunicator& world) {
    EXPECT_EQ(world.Split(world.rank() == 1 ? -1 : 0, 0) == nullptr, world.rank() == 1);
  });
}

TEST(Split, HostsAreToldApartByTheirGroups) {
  ThreadWorld(5).Run(SettingsOf(Places::kHosts), [](NativeCommunicator& world) {
    std::vector<int> hosts;
    for (int rank = 0; rank < 5; ++rank) hosts.push_back(world.host_of(rank));
    EXPECT_THAT(hosts, ::testing::ElementsAre(0, 0, 0, 3, 4));
  });
}

TEST(Split, ThreadsUseSeveralCommunicatorsAtOnce) {
  constexpr int kRounds = 200;
  for (const Places places : {Places::kOneHost, Places::kTcp, Places::kScattered}) {
    ThreadWorld(4).Run(SettingsOf(places), [&](NativeCommunicator& world) {
      std::vector<std::unique_ptr<Communicator>> groups;
      groups.push_back(world.Split(0, 0));
      groups.push_back(world.Split(0, -world.rank()));
      groups.push_back(world.Split(world.rank() / 2, 0));
      std::vector<std::thread> threads;
      const auto use = [](Communicator& group) {
        for (int round = 0; round < kRounds; ++round) {
          std::vector<float> values(static_cast<std::size_t>(round) * 30 + 1, 1.0F);
          group.Allreduce(values.data(), values.size(), FloatSum());
          ASSERT_EQ(values.back(), static_cast<float>(group.world_size()));
          int token = group.rank();
          const int next = (group.rank() + 1) % group.world_size();
          const int before = (group.rank() + group.world_size() - 1) % group.world_size();
          int from_before = -1;
          const Outbound out{next, &token, sizeof(token)};
          const Inbound in{before, &from_before, sizeof(from_before)};
          group.SendReceive({&out, 1}, {&in, 1});
          ASSERT_EQ(from_before, before);
        }
      };
      for (const auto& group : groups) threads.emplace_back([&use, &group] { use(*group); });
      use(world);
      for (std::thread& thread : threads) thread.join();
    });
  }
}

int OpenDescriptors() {
  int count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

int Mappings() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

/// The allocated size, in 512-byte blocks, of the largest shared-memory file that this process has open.
long SharedBlocks() {
  long most = 0;
  for (int fd = 0; fd < 4096; ++fd) {
    struct stat status {};
    std::array<char, 64> name{};
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    if (readlink(link.c_str(), name.data(), name.size() - 1) <= 0) continue;
    if (std::string(name.data()).find("memfd:warren") == std::string::npos) continue;
    if (fstat(fd, &status) == 0) most = std::max<long>(most, status.st_blocks);
  }
  return most;
}

TEST(Split, ThousandsOfThemLeaveNothingBehind) {
  ThreadWorld(3).Run(Settings{}, [](NativeCommunicator& world) {
    std::array<int, 2> descriptors{};
    std::array<int, 2> mappings{};
    std::array<long, 2> blocks{};
    const auto use = [&](int times) {
      for (int i = 0; i < times; ++i) {
        const auto group = world.Split(world.rank() == i % 3 ? -1 : 0, 0);
        if (!group) continue;
        std::vector<float> values(20'000, 1.0F);
        group->Allreduce(values.data(), values.size(), FloatSum());
        ASSERT_EQ(values[7], 2.0F);
      }
    };
    const auto look = [&](std::size_t when) {
      world.Barrier();
      if (world.rank() == 0) {
        descriptors[when] = OpenDescriptors();
        mappings[when] = Mappings();
        blocks[when] = SharedBlocks();
      }
      world.Barrier();
    };
    use(30);
    look(0);
    use(3000);
    look(1);
    if (world.rank() != 0) return;
    EXPECT_EQ(descriptors[0], descriptors[1]);
    EXPECT_LE(mappings[1], mappings[0] + 10);  // the allocator and threads may add some
    EXPECT_EQ(blocks[0], blocks[1]);
  });
}

/// Exchanges records between the members of a group, which are threads. `told` is called once, when this rank
/// passes its first record and before the other ranks see that record.
class HeldMembers final : public OobAllgather {
 public:
  HeldMembers(std::vector<std::string>& records, std::barrier<>& barrier, int rank,
              std::function<void()> told)
      : records_(records), barrier_(barrier), rank_(rank), told_(std::move(told)) {}
  int rank() const override { return rank_; }
  int world_size() const override { return static_cast<int>(records_.size()); }
  std::vector<std::string> Allgather(const std::string& record) override {
    if (told_) std::exchange(told_, nullptr)();
    records_[static_cast<std::size_t>(rank_)] = record;
    barrier_.arrive_and_wait();
    std::vector<std::string> all = records_;
    barrier_.arrive_and_wait();
    return all;
  }

 private:
  std::vector<std::string>& records_;
  std::barrier<>& barrier_;
  int rank_;
  std::function<void()> told_;
};

TEST(Group, TheRankThatHasNoDescriptorLeftToOfferALinkIsNamedByAll) {
  std::vector<std::string> records(2);
  std::barrier<> barrier(2);
  std::binary_semaphore has_offered(0);
  ThreadWorld(2).Run(SettingsOf(Places::kTcp), [&](NativeCommunicator& world) {
    // The limit holds for the whole process, so rank 1 uses the descriptors up only after rank 0 has made its
    // offer.
    std::optional<NoDescriptorLeft> none;
    if (world.rank() == 1) {
      has_offered.acquire();
      none.emplace();
    }
    HeldMembers members(records, barrier, world.rank(), [&] {
      none.reset();
      if (world.rank() == 0) has_offered.release();
    });
    const std::array ranks{0, 1};
    EXPECT_THAT(MessageOf([&] { world.Group(ranks, "both", members); }),
                AllOf(HasSubstr("rank 1 could not take part in the new communicator"),
                      HasSubstr("its own host: Too many open files")));
    world.Barrier();
  });
}

TEST(Split, RanksInDifferentCallsAreToldBothAndTheOthersGoOn) {
  for (const Places places : {Places::kOneHost, Places::kTcp}) {
    ThreadWorld(4).Run(SettingsOf(places), [](NativeCommunicator& world) {
      const auto half = world.Split(world.rank() / 2, 0);
      float value = 1;
      if (world.rank() < 2) {
        const std::string message = MessageOf([&] {
          if (half->rank() == 0) {
            half->Allreduce(&value, 1, FloatSum());
          } else {
            half->Barrier();
          }
        });
        EXPECT_THAT(message, ::testing::AnyOf(AllOf(HasSubstr("allreduce"), HasSubstr("barrier")),
                                              HasSubstr("gave up")));
      } else {
        half->Allreduce(&value, 1, FloatSum());
        EXPECT_EQ(value, 2.0F);
      }
      world.Barrier();
    });
  }
}

/// Calls a collective that has a root, on vectors of `count` floats.
void CallWithRoot(Communicator& communicator, Collective collective, std::size_t count, int root) {
  const auto size = static_cast<std::size_t>(communicator.world_size());
  const std::size_t bytes = count * sizeof(float);
  std::vector<float> slice(count, 1.0F);
  std::vector<float> all(count * size, 1.0F);
  std::vector<std::size_t> offsets(size + 1);
  for (std::size_t rank = 0; rank <= size; ++rank) offsets[rank] = rank * bytes;
  switch (collective) {
    case Collective::kBroadcast:
      return communicator.Broadcast(slice.data(), bytes, root);
    case Collective::kReduce:
      return communicator.Reduce(slice.data(), count, FloatSum(), root);
    case Collective::kGather:
      return communicator.Gather(slice.data(), bytes, all.data(), offsets, root);
    case Collective::kScatter:
      return communicator.Scatter(all.data(), offsets, slice.data(), bytes, root);
    default:
      FAIL() << "has no root";
  }
}

TEST(Split, RanksOfAHostThatTakeDifferentRanksForTheRootAreToldInThatCall) {
#ifdef WARREN_PORTABLE
  GTEST_SKIP() << "SKIPPED: ranks of a host share no memory here, and are told by the next call";
#endif
  for (const Collective collective :
       {Collective::kBroadcast, Collective::kReduce, Collective::kGather, Collective::kScatter}) {
    for (const std::size_t count : {std::size_t{6}, std::size_t{60'000}}) {
      for (const int shift : {0, 1}) {
        SCOPED_TRACE(std::string(Name(collective)) + " of " + std::to_string(count) + ", shift " +
                     std::to_string(shift));
        std::atomic<int> num_told = 0;
        ThreadWorld(3).Run(SettingsOf(Places::kOneHost), [&](NativeCommunicator& world) {
          const auto all = world.Split(0, 0);
          const int root = (world.rank() + shift) % 3;
          const std::string message = MessageOf([&] { CallWithRoot(*all, collective, count, root); });
          EXPECT_THAT(message,
                      ::testing::AnyOf(AllOf(HasSubstr(std::string(Name(collective))), HasSubstr("root"),
                                             HasSubstr("All ranks must make the same calls")),
                                       HasSubstr("gave up"), HasSubstr("gives up"), HasSubstr("no error")));
          if (message.find("All ranks must make the same calls") != std::string::npos) ++num_told;
          world.Barrier();
        });
        EXPECT_GE(num_told.load(), 1);
      }
    }
  }
}

TEST(Split, RanksOfDifferentHostsThatTakeDifferentRanksForTheRootAreToldByTheNextCall) {
  ThreadWorld(3).Run(SettingsOf(Places::kTcp), [](NativeCommunicator& world) {
    const auto all = world.Split(0, 0);
    const std::string message = MessageOf([&] {
      CallWithRoot(*all, Collective::kBroadcast, 6, world.rank());
      all->Barrier();
    });
    EXPECT_THAT(message, ::testing::AnyOf(HasSubstr("call"), HasSubstr("gave up"), HasSubstr("gives up")));
    world.Barrier();
  });
}

TEST(Split, AMessageOfAnotherLengthIsNamed) {
  for (const Places places : {Places::kOneHost, Places::kTcp}) {
    ThreadWorld(2).Run(SettingsOf(places), [](NativeCommunicator& world) {
      const auto both = world.Split(0, 0);
      std::array<char, 8> bytes{};
      if (world.rank() == 0) {
        const Outbound out{1, bytes.data(), 5};
        both->SendReceive({&out, 1}, {});
      } else {
        const Inbound in{0, bytes.data(), 6};
        EXPECT_THAT(MessageOf([&] {
                      both->SendReceive({}, {&in, 1});
                    }),
                    AllOf(HasSubstr("of 6 bytes"), HasSubstr("of 5 bytes"), HasSubstr("rank 0")));
      }
      world.Barrier();
    });
  }
}

TEST(Split, RanksThatDisagreeAboutASliceOfAnAllToAllAreTold) {
  for (const Places places : {Places::kOneHost, Places::kTcp}) {
    for (const std::size_t bytes : {std::size_t{5}, std::size_t{100'000}}) {
      ThreadWorld(3).Run(SettingsOf(places), [bytes](NativeCommunicator& world) {
        const auto all = world.Split(0, 0);
        const std::vector<std::size_t> right{0, bytes, 2 * bytes, 3 * bytes};
        std::vector<std::size_t> wrong = right;
        if (world.rank() == 1) wrong = {0, bytes + 1, 2 * bytes + 1, 3 * bytes + 1};
        std::vector<char> from(right.back());
        std::vector<char> to(wrong.back());
        const std::string message = MessageOf([&] { all->AllToAll(from.data(), right, to.data(), wrong); });
        EXPECT_THAT(message,
                    ::testing::AnyOf(AllOf(HasSubstr("all-to-all of " + std::to_string(bytes) + " bytes"),
                                           HasSubstr(std::to_string(bytes + 1) + " bytes")),
                                     HasSubstr("gave up"), HasSubstr("gives up"), HasSubstr("no error")));
        if (world.rank() == 1) {
          EXPECT_THAT(message, HasSubstr("rank 0"));
        }
        world.Barrier();
      });
    }
  }
}

TEST(Split, WhoFreesOneIsNoLossForThoseWhoDoNotNeedIt) {
  for (const Places places : {Places::kOneHost, Places::kTcp, Places::kScattered}) {
    ThreadWorld(4).Run(SettingsOf(places), [](NativeCommunicator& world) {
      auto all = world.Split(0, 0);
      float value = 1;
      all->Allreduce(&value, 1, FloatSum());
      if (world.rank() == 3) all.reset();
      world.Barrier();
      if (world.rank() < 2) {
        int token = 0;
        const int peer = 1 - world.rank();
        for (int i = 0; i < 100; ++i) {
          // Rank 0 is late once, so that its peer waits long enough to check for lost ranks.
          if (world.rank() == 0 && i == 50) std::this_thread::sleep_for(std::chrono::milliseconds(300));
          const Outbound out{peer, &i, sizeof(i)};
          const Inbound in{peer, &token, sizeof(token)};
          all->SendReceive({&out, 1}, {&in, 1});
          ASSERT_EQ(token, i);
        }
      }
      world.Barrier();
    });
  }
}

TEST(Split, WhoNeedsARankThatHasFreedItIsTold) {
  for (const Places places : {Places::kOneHost, Places::kTcp}) {
    for (const int leaver : {0, 2}) {
      for (const bool is_linked : {true, false}) {
        ThreadWorld(3).Run(SettingsOf(places), [=](NativeCommunicator& world) {
          auto all = world.Split(0, 0);
          float value = 1;
          if (is_linked) all->Allreduce(&value, 1, FloatSum());
          if (world.rank() == leaver) {
            all.reset();
          } else {
            EXPECT_THAT(MessageOf([&] { all->Allreduce(&value, 1, FloatSum()); }),
                        HasSubstr("rank " + std::to_string(leaver)));
          }
          world.Barrier();
        });
      }
    }
  }
}

TEST(Split, ARankThatGivesUpIsNamedByItsRankInTheJob) {
  for (const Places places : {Places::kOneHost, Places::kTcp}) {
    ThreadWorld(4).Run(SettingsOf(places), [](NativeCommunicator& world) {
      const auto upper = world.Split(world.rank() < 2 ? -1 : 0, 0);
      if (world.rank() == 2) upper->GiveUp();
      if (world.rank() == 3) {
        EXPECT_THAT([&] { upper->Barrier(); },
                    ::testing::Throws<LostPeer>(::testing::Property(&LostPeer::rank, 2)));
      }
      world.Barrier();
    });
  }
}

TEST(Split, WhoComesLateToOneThatOthersHaveGivenUpIsTold) {
  for (const Places places : {Places::kOneHost, Places::kTcp}) {
    ThreadWorld(3).Run(SettingsOf(places), [](NativeCommunicator& world) {
      const auto all = world.Split(0, 0);
      std::array<char, 8> bytes{};
      const Outbound out{1, bytes.data(), 5};
      const Inbound in{0, bytes.data(), 6};
      if (world.rank() == 0) all->SendReceive({&out, 1}, {});
      if (world.rank() == 1) {
        EXPECT_THAT(MessageOf([&] { all->SendReceive({}, {&in, 1}); }), HasSubstr("5 bytes"));
      }
      world.Barrier();
      if (world.rank() == 2) {
        EXPECT_NE(MessageOf([&] { all->Barrier(); }), "no error");
      }
      world.Barrier();
    });
  }
}

}  // namespace
}  // namespace warren::testing
