// Worlds and groups of ranks that meet over a channel they already share (WarrenCommMeet, WarrenCommGroup).
// Here the ranks are threads and the channel is a Board; tests/python/torch_test.py tests processes,
// including processes that die.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "warren/c_api.h"
#include "warren/collectives.h"
#include "warren/mailbox.h"

namespace {

using ::testing::HasSubstr;

/// The channel through which ranks exchange their records.
class Board {
 public:
  std::vector<std::string> Exchange(const std::string& round, int rank, int size, const std::string& record) {
    std::unique_lock lock(mutex_);
    std::vector<std::string>& records = rounds_[round];
    records.resize(static_cast<std::size_t>(size));
    records[rank] = record;
    ++count_[round];
    changed_.notify_all();
    changed_.wait(lock, [&] { return count_[round] == size; });
    return records;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::vector<std::string>> rounds_;
  std::map<std::string, int> count_;
};

/// One rank's WarrenRendezvous, which exchanges records over a Board.
class Meeting {
 public:
  Meeting(Board& board, std::string name, int rank, int size)
      : board_(board),
        name_(std::move(name)),
        rendezvous_{sizeof(WarrenRendezvous), rank, size, &Allgather, this} {}
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  const WarrenRendezvous* get() const { return &rendezvous_; }
  WarrenRendezvous& rendezvous() { return rendezvous_; }

 private:
  static int Allgather(const void* record, size_t bytes,
                       void (*give)(void* records, const void* record, size_t bytes), void* records, char*,
                       size_t, void* context) {
    auto& self = *static_cast<Meeting*>(context);
    const std::string round = self.name_ + "/" + std::to_string(self.round_++);
    const std::string own(static_cast<const char*>(record), bytes);
    for (const std::string& text :
         self.board_.Exchange(round, self.rendezvous_.rank, self.rendezvous_.size, own)) {
      give(records, text.data(), text.size());
    }
    return 0;
  }

  Board& board_;
  std::string name_;
  int round_ = 0;
  WarrenRendezvous rendezvous_;
};

void RunRanks(int size, const std::function<void(int rank)>& function) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back([&, rank] { function(rank); });
  for (std::thread& thread : threads) thread.join();
}

WarrenComm Meet(Board& board, int rank, int size) {
  Meeting meeting(board, "world", rank, size);
  WarrenComm world = nullptr;
  EXPECT_EQ(WarrenCommMeet(meeting.get(), &world), 0) << WarrenGetLastError();
  return world;
}

/// A rendezvous of rank 0 whose exchange fails.
WarrenRendezvous Gone(int size) {
  WarrenRendezvous gone = WARREN_RENDEZVOUS;
  gone.size = size;
  gone.allgather = [](const void*, size_t, void (*)(void*, const void*, size_t), void*, char* error,
                      size_t bytes, void*) {
    std::snprintf(error, bytes, "the store is gone");
    return 1;
  };
  return gone;
}

int Sum(WarrenComm comm, int number) {
  EXPECT_EQ(WarrenAllreduce(comm, &number, &number, 1, WARREN_INT32, WARREN_SUM), 0) << WarrenGetLastError();
  return number;
}

TEST(Rendezvous, RanksThatMeetAreAWorldOfTheirOwn) {
  for (const int size : {1, 2, 5}) {
    Board board;
    RunRanks(size, [&](int rank) {
      WarrenComm world = Meet(board, rank, size);
      int found_rank = -1;
      int found_size = -1;
      EXPECT_EQ(WarrenCommRank(world, &found_rank), 0);
      EXPECT_EQ(WarrenCommSize(world, &found_size), 0);
      EXPECT_EQ(found_rank, rank);
      EXPECT_EQ(found_size, size);
      EXPECT_EQ(Sum(world, rank + 1), size * (size + 1) / 2);
      WarrenComm half = nullptr;
      EXPECT_EQ(WarrenCommSplit(world, rank % 2, 0, &half), 0);
      EXPECT_EQ(Sum(half, 1), rank % 2 == 0 ? (size + 1) / 2 : size / 2);
      WarrenCommFree(half);
      WarrenCommFree(world);
    });
  }
}

TEST(Rendezvous, AGroupIsMadeByItsOwnRanksWhileOthersDoNothing) {
  constexpr int kSize = 5;
  const std::vector<std::vector<int>> groups{{3, 1}, {0, 2, 4}, {4}, {1, 4, 0}};
  Board board;
  RunRanks(kSize, [&](int rank) {
    WarrenComm world = Meet(board, rank, kSize);
    std::vector<WarrenComm> made;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const std::vector<int>& ranks = groups[i];
      const auto at = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
      if (at == static_cast<std::ptrdiff_t>(ranks.size())) continue;
      const std::string name = "group " + std::to_string(i);
      Meeting meeting(board, name, static_cast<int>(at), static_cast<int>(ranks.size()));
      WarrenComm group = nullptr;
      ASSERT_EQ(WarrenCommGroup(world, ranks.data(), ranks.size(), name.c_str(), meeting.get(), &group), 0)
          << WarrenGetLastError();
      int found = -1;
      EXPECT_EQ(WarrenCommRank(group, &found), 0);
      EXPECT_EQ(found, at);
      EXPECT_EQ(WarrenCommRankInWorld(group, 0, &found), 0);
      EXPECT_EQ(found, ranks[0]);
      EXPECT_EQ(Sum(group, rank), std::accumulate(ranks.begin(), ranks.end(), 0));
      made.push_back(group);
    }
    EXPECT_EQ(Sum(world, 1), kSize);
    for (WarrenComm group : made) WarrenCommFree(group);
    WarrenCommFree(world);
  });
}

void ExpectThatARankMayLeave() {
  Board board;
  RunRanks(3, [&](int rank) {
    WarrenComm world = Meet(board, rank, 3);
    EXPECT_EQ(Sum(world, 1), 3);
    if (rank == 2) WarrenCommFree(world);
    board.Exchange("rank 2 has left", rank, 3, "");
    if (rank == 2) return;
    // Calls that do not need rank 2 still work, even if a rank waits so long that it checks for lost ranks.
    if (rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    for (int i = 0; i < 10; ++i) {
      int number = i;
      const bool sends = rank == i % 2;
      ASSERT_EQ(sends ? WarrenSend(world, &number, 1, WARREN_INT32, 1 - rank)
                      : WarrenRecv(world, &number, 1, WARREN_INT32, 1 - rank),
                0)
          << WarrenGetLastError();
      ASSERT_EQ(number, i);
    }
    EXPECT_EQ(WarrenBarrier(world), -1);
    EXPECT_THAT(WarrenGetLastError(), HasSubstr("rank 2"));
    WarrenCommFree(world);
  });
}

TEST(Rendezvous, ARankMayLeaveByItselfAndWhoeverNeedsItIsTold) {
  ExpectThatARankMayLeave();
  setenv("WARREN_SHARED_MEMORY", "off", 1);
  ExpectThatARankMayLeave();
  unsetenv("WARREN_SHARED_MEMORY");
}

TEST(Rendezvous, ATimeoutOfTheCommunicatorHoldsForCallsWithoutTheirOwn) {
  Board board;
  RunRanks(2, [&](int rank) {
    WarrenComm world = Meet(board, rank, 2);
    EXPECT_EQ(WarrenCommSetTimeout(world, 0.2), 0) << WarrenGetLastError();
    // A call's own timeout leaves the communicator's unchanged.
    WarrenCallOptions longer = WARREN_CALL_OPTIONS;
    longer.timeout_seconds = 60;
    WarrenHandle handle = nullptr;
    EXPECT_EQ(WarrenBarrierAsync(world, &longer, &handle), 0);
    EXPECT_EQ(WarrenWait(handle), 0) << WarrenGetLastError();
    if (rank == 0) {
      EXPECT_EQ(WarrenBarrier(world), -1);
      EXPECT_THAT(WarrenGetLastError(), HasSubstr("rank 1"));
    }
    board.Exchange("end", rank, 2, "");
    WarrenCommFree(world);
  });
}

TEST(Rendezvous, WhatItSaysWentWrongIsTheError) {
  WarrenRendezvous broken = Gone(2);
  WarrenComm world = nullptr;
  EXPECT_EQ(WarrenCommMeet(&broken, &world), -1);
  EXPECT_EQ(world, nullptr);
  EXPECT_THAT(WarrenGetLastError(), HasSubstr("WarrenCommMeet: the rendezvous failed: the store is gone"));
  // An exchange that omits the record of a rank.
  broken.allgather = [](const void* record, size_t bytes, void (*give)(void*, const void*, size_t),
                        void* records, char*, size_t, void*) {
    give(records, record, bytes);
    return 0;
  };
  EXPECT_EQ(WarrenCommMeet(&broken, &world), -1);
  EXPECT_THAT(WarrenGetLastError(), HasSubstr("1 records"));
}

TEST(Rendezvous, OfAGroupThatFailsLeavesTheCommunicatorAsItWas) {
  Board board;
  WarrenComm world = Meet(board, 0, 1);
  const WarrenRendezvous broken = Gone(1);
  const int ranks[] = {0};
  WarrenComm group = nullptr;
  EXPECT_EQ(WarrenCommGroup(world, ranks, 1, "a", &broken, &group), -1);
  EXPECT_EQ(group, nullptr);
  EXPECT_THAT(WarrenGetLastError(), HasSubstr("communicator 'a' cannot be made: "));
  EXPECT_THAT(WarrenGetLastError(), HasSubstr("the store is gone"));
  EXPECT_EQ(Sum(world, 3), 3);
  WarrenCommFree(world);
}

TEST(Mailbox, OfAnOnlyRankRefusesToReceiveFromAnyOther) {
  Board board;
  WarrenComm world = Meet(board, 0, 1);
  WarrenMailbox mailbox = nullptr;
  ASSERT_EQ(WarrenMailboxCreate(world, &mailbox), 0) << WarrenGetLastError();
  int number = 0;
  WarrenHandle handle = nullptr;
  EXPECT_EQ(WarrenMailboxRecv(mailbox, &number, sizeof number, WARREN_ANY_RANK, 0, nullptr, nullptr, &handle),
            -1);
  EXPECT_THAT(WarrenGetLastError(), HasSubstr("WarrenMailboxRecv: there is no other rank to receive from"));
  EXPECT_EQ(handle, nullptr);
  EXPECT_EQ(WarrenMailboxFree(mailbox), 0);
  WarrenCommFree(world);
}

TEST(Mailbox, MayBeFreedByAFunctionThatIsCalledWhenAMessageHasEnded) {
  Board board;
  RunRanks(2, [&](int rank) {
    WarrenComm world = Meet(board, rank, 2);
    WarrenMailbox mailbox = nullptr;
    ASSERT_EQ(WarrenMailboxCreate(world, &mailbox), 0) << WarrenGetLastError();
    int number = 7;
    WarrenHandle handle = nullptr;
    if (rank == 0) {
      ASSERT_EQ(WarrenMailboxRecv(mailbox, &number, sizeof number, 1, 0, nullptr, nullptr, &handle), 0);
      const auto free_it = [](const char*, void* context) {
        EXPECT_EQ(WarrenMailboxFree(static_cast<WarrenMailbox>(context)), 0) << WarrenGetLastError();
      };
      ASSERT_EQ(WarrenWhenDone(handle, free_it, mailbox), 0);
    }
    board.Exchange("rank 0 receives", rank, 2, "");
    if (rank == 0) {
      EXPECT_EQ(WarrenWait(handle), 0) << WarrenGetLastError();
    } else {
      ASSERT_EQ(WarrenMailboxSend(mailbox, &number, sizeof number, 0, 0, nullptr, &handle), 0);
      EXPECT_EQ(WarrenWait(handle), 0) << WarrenGetLastError();
      // Ends when rank 0's mailbox has been freed.
      ASSERT_EQ(WarrenMailboxRecv(mailbox, &number, sizeof number, 0, 0, nullptr, nullptr, &handle), 0);
      EXPECT_EQ(WarrenWait(handle), -1);
      EXPECT_THAT(WarrenGetLastError(), HasSubstr("rank 0"));
      EXPECT_EQ(WarrenMailboxFree(mailbox), 0);
    }
    board.Exchange("end", rank, 2, "");
    WarrenCommFree(world);
  });
}

TEST(Rendezvous, NonsenseIsRefused) {
  Board board;
  Meeting meeting(board, "world", 0, 1);
  WarrenComm world = nullptr;
  const auto meets = [&] { return WarrenCommMeet(meeting.get(), &world); };
  meeting.rendezvous().rank = 1;
  EXPECT_EQ(meets(), -1);
  EXPECT_THAT(WarrenGetLastError(), HasSubstr("rank 1 of 1"));
  meeting.rendezvous().rank = 0;
  EXPECT_EQ(WarrenCommMeet(nullptr, &world), -1);
  EXPECT_EQ(WarrenCommMeet(meeting.get(), nullptr), -1);
  ASSERT_EQ(meets(), 0) << WarrenGetLastError();

  const auto groups = [&](const std::vector<int>& ranks, const char* name) {
    WarrenComm group = nullptr;
    EXPECT_EQ(WarrenCommGroup(world, ranks.data(), ranks.size(), name, meeting.get(), &group), -1);
    return std::string(WarrenGetLastError());
  };
  EXPECT_THAT(groups({}, "a"), HasSubstr("empty"));
  EXPECT_THAT(groups({0}, ""), HasSubstr("`name` is NULL or empty"));
  EXPECT_THAT(groups({1}, "a"), HasSubstr("1, which is not a rank"));
  EXPECT_THAT(groups({0, 0}, "a"), HasSubstr("listed twice"));
  EXPECT_EQ(WarrenCommSetTimeout(world, -1), -1);
  // The communicator is still usable after these errors.
  EXPECT_EQ(Sum(world, 3), 3);
  WarrenCommFree(world);
}

// --- the same in C++ -------------------------------------------------------------------------------------

warren::AllgatherRecords Over(Board& board, const std::string& name, int rank, int size) {
  return [&board, name, rank, size, round = 0](const std::string& record) mutable {
    return board.Exchange(name + "/" + std::to_string(round++), rank, size, record);
  };
}

TEST(RendezvousInCpp, RanksMeetMakeGroupsAndSendMessages) {
  constexpr int kSize = 3;
  Board board;
  RunRanks(kSize, [&](int rank) {
    const warren::Communicator world = warren::Meet(rank, kSize, Over(board, "world", rank, kSize));
    ASSERT_EQ(world.rank(), rank);
    ASSERT_EQ(world.size(), kSize);
    const std::vector<int> ranks{2, 0};
    if (rank != 1) {
      const warren::Communicator group =
          world.Group(ranks, "pair", Over(board, "pair", rank == 2 ? 0 : 1, 2));
      ASSERT_EQ(group.RankInWorld(group.rank()), rank);
      int sum = rank;
      group.Allreduce(&sum, 1, warren::Op::kSum);
      EXPECT_EQ(sum, 2);
    } else {
      EXPECT_THROW(world.Group(ranks, "pair", Over(board, "pair", 0, 2)), warren::Error);
    }
    const warren::Mailbox mailbox(world);
    const int right = (rank + 1) % kSize;
    const int left = (rank + 2) % kSize;
    const std::vector<double> given{0.5 * rank, 7};
    std::vector<double> taken(2);
    warren::Handle sent = mailbox.Send(given.data(), given.size(), right, 5);
    int source = -1;
    mailbox.Recv(taken.data(), taken.size(), warren::kAnyRank, 5, &source).Wait();
    sent.Wait();
    EXPECT_EQ(source, left);
    EXPECT_THAT(taken, ::testing::ElementsAre(0.5 * left, 7));
    EXPECT_THROW(mailbox.Recv(taken.data(), 1, left, 6, nullptr, {"", 0.1}).Wait(), warren::Error);
    int number = 1;
    world.Allreduce(&number, 1, warren::Op::kSum);
    EXPECT_EQ(number, kSize);
    // A barrier that the other ranks do not call times out.
    world.SetTimeout(0.2);
    if (rank == 0) {
      EXPECT_THROW(world.Barrier(), warren::Error);
    }
    board.Exchange("end", rank, kSize, "");
  });
}

TEST(RendezvousInCpp, WhatTheCallersFunctionThrowsIsThrown) {
  const auto gone = [](const std::string&) -> std::vector<std::string> { throw std::out_of_range("gone"); };
  EXPECT_THROW(warren::Meet(0, 2, gone), std::out_of_range);
  EXPECT_THROW(warren::Meet(2, 2, gone), warren::Error);
}

}  // namespace
