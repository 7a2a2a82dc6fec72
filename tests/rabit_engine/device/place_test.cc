#include "rabit_engine/device/cuda/place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace warren::device {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// The places of `count` ranks on one host, each a separate process with its own GPU.
std::vector<Place> Ranks(int count) {
  std::vector<Place> places(static_cast<std::size_t>(count));
  for (int rank = 0; rank < count; ++rank) {
    Place& place = places[static_cast<std::size_t>(rank)];
    place.gpu[0] = static_cast<unsigned char>(rank + 1);
    place.host = 7;
    place.shares = 1;
    place.nccl = 22809;
    place.process = 100 + rank;
    std::string("alpha").copy(place.host_name.data(), 63);
  }
  return places;
}

std::vector<Place> Sharing(int count) {
  std::vector<Place> places = Ranks(count);
  for (Place& place : places) place.gpu = places.front().gpu;
  return places;
}

TEST(Choose, NcclWhereEachRankHasAGpu) {
  EXPECT_EQ(Choose(Ranks(4)).path, Path::kNccl);
  EXPECT_EQ(Choose(Ranks(1)).path, Path::kAlone);
  std::vector<Place> two_hosts = Ranks(4);
  two_hosts[2].host = two_hosts[3].host = 8;
  EXPECT_EQ(Choose(two_hosts).path, Path::kNccl);
}

TEST(Choose, NcclOnOneHostOnlyWhereEncryptionIsAskedFor) {
  std::vector<Place> places = Ranks(4);
  for (Place& place : places) place.tls = 1;
  EXPECT_EQ(Choose(places).path, Path::kNccl);
  places[3].host = 8;
  const Choice choice = Choose(places);
  EXPECT_EQ(choice.path, Path::kStaged);
  EXPECT_THAT(choice.why, HasSubstr("WARREN_TLS=1"));
  for (Place& place : places) place.wish = Wish::kNccl;
  EXPECT_THAT(Choose(places).trouble, HasSubstr("WARREN_TLS=1"));
}

TEST(Choose, IpcWhereAllShareOne) {
  EXPECT_EQ(Choose(Sharing(2)).path, Path::kShared);
  EXPECT_EQ(Choose(Sharing(kMaxShared)).path, Path::kShared);
  EXPECT_EQ(Choose(Sharing(kMaxShared + 1)).path, Path::kStaged);
}

TEST(Choose, ByWayOfTheHostOtherwise) {
  std::vector<Place> some_share = Ranks(4);
  some_share[1].gpu = some_share[0].gpu;
  Choice choice = Choose(some_share);
  EXPECT_EQ(choice.path, Path::kStaged);
  EXPECT_THAT(choice.why,
              HasSubstr("4 ranks share 3 GPUs, and rank 0 on alpha and rank 2 on alpha have different"));

  std::vector<Place> containers = Sharing(2);
  containers[1].host = 8;
  choice = Choose(containers);
  EXPECT_EQ(choice.path, Path::kStaged);
  EXPECT_THAT(choice.why, HasSubstr("on different hosts or in different containers"));

  std::vector<Place> sandbox = Sharing(2);
  sandbox[1].shares = 0;
  EXPECT_EQ(Choose(sandbox).path, Path::kStaged);
  EXPECT_THAT(Choose(sandbox).why, HasSubstr("rank 1 on alpha cannot export memory or events"));

  std::vector<Place> threads = Sharing(3);
  threads[2].process = threads[1].process;
  EXPECT_THAT(Choose(threads).why, HasSubstr("ranks 1 and 2 are threads of one process"));

  std::vector<Place> no_nccl = Ranks(2);
  no_nccl[1].nccl = 0;
  std::string("not found").copy(no_nccl[1].no_nccl.data(), 511);
  EXPECT_THAT(Choose(no_nccl).why, HasSubstr("rank 1 on alpha could not load NCCL: not found"));
}

TEST(Choose, NoMigForNcclAndIpc) {
  std::vector<Place> slices = Ranks(2);
  slices[0].is_mig = 1;
  EXPECT_EQ(Choose(slices).path, Path::kStaged);
  EXPECT_THAT(Choose(slices).why, HasSubstr("rank 0 on alpha has a MIG slice"));
  slices = Sharing(2);
  slices[1].is_mig = 1;
  EXPECT_EQ(Choose(slices).path, Path::kStaged);
}

TEST(Choose, NcclOfOneVersionThatIsNotTooOld) {
  std::vector<Place> mixed = Ranks(3);
  mixed[2].nccl = 21805;
  EXPECT_EQ(Choose(mixed).path, Path::kStaged);
  EXPECT_THAT(Choose(mixed).why, HasSubstr("NCCL 2.28.9, and rank 2 on alpha has 2.18.5"));
  for (Place& place : mixed) place.nccl = 21210;
  EXPECT_THAT(Choose(mixed).why, HasSubstr("has NCCL 2.12.10; the oldest supported one is 2.14.0"));
}

TEST(Choose, WhatTheUserWishesOrAnError) {
  const auto with = [](std::vector<Place> places, Wish wish) {
    for (Place& place : places) place.wish = wish;
    return Choose(places);
  };
  EXPECT_EQ(with(Sharing(2), Wish::kNccl).path, Path::kNccl);
  EXPECT_EQ(with(Ranks(1), Wish::kNccl).path, Path::kNccl);
  EXPECT_EQ(with(Ranks(2), Wish::kStaged).path, Path::kStaged);
  EXPECT_EQ(with(Sharing(2), Wish::kShared).path, Path::kShared);
  EXPECT_THAT(with(Ranks(2), Wish::kShared).trouble,
              HasSubstr("WARREN_DEVICE_PATH=shared: rank 0 on alpha and"));
  EXPECT_THAT(Choose(Ranks(2)).trouble, IsEmpty());
  std::vector<Place> differ = Ranks(2);
  differ[1].wish = Wish::kStaged;
  EXPECT_THAT(Choose(differ).trouble, HasSubstr("different WARREN_DEVICE_PATH"));
}

TEST(Choose, ARankInTroubleStopsAll) {
  std::vector<Place> places = Ranks(3);
  std::string("no GPU").copy(places[2].trouble.data(), 511);
  EXPECT_EQ(Choose(places).trouble, "rank 2 on alpha: no GPU");
}

TEST(ReadWish, KnowsFour) {
  EXPECT_EQ(ReadWish("auto"), Wish::kAuto);
  EXPECT_EQ(ReadWish("nccl"), Wish::kNccl);
  EXPECT_EQ(ReadWish("NCCL"), std::nullopt);
}

TEST(NcclVersionText, OfOldAndNewCodes) {
  EXPECT_EQ(NcclVersionText(22809), "2.28.9");
  EXPECT_EQ(NcclVersionText(21005), "2.10.5");
  EXPECT_EQ(NcclVersionText(2803), "2.8.3");
}

}  // namespace
}  // namespace warren::device
