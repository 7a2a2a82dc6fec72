#include "rabit_engine/device/cuda/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace warren::device {
namespace {

/// The first NCCL version that has all functions used here, in particular ncclCommInitRankConfig, with which
/// joining can be aborted.
constexpr int kOldestNccl = 21400;

std::string Who(std::span<const Place> places, std::size_t rank) {
  return fmt::format("rank {} on {}", rank, places[rank].host_name.data());
}

/// Returns the reason why these ranks cannot use NCCL; empty if they can.
std::string AgainstNccl(std::span<const Place> places) {
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    const Place& place = places[rank];
    if (place.is_mig != 0)
      return fmt::format("{} has a MIG slice, which NCCL does not support", Who(places, rank));
    if (place.tls != 0 && place.host != places.front().host) {
      return fmt::format(
          "WARREN_TLS=1 requires encryption between hosts, which NCCL does not provide, and {} and {} are on different hosts or in different containers",
          Who(places, 0), Who(places, rank));
    }
    if (place.nccl == 0)
      return fmt::format("{} could not load NCCL: {}", Who(places, rank), place.no_nccl.data());
    if (place.nccl < kOldestNccl) {
      return fmt::format("{} has NCCL {}; the oldest supported one is {}", Who(places, rank),
                         NcclVersionText(place.nccl), NcclVersionText(kOldestNccl));
    }
    if (place.nccl != places.front().nccl) {
      return fmt::format("{} has NCCL {}, and {} has {}", Who(places, 0),
                         NcclVersionText(places.front().nccl), Who(places, rank),
                         NcclVersionText(place.nccl));
    }
  }
  return "";
}

/// Returns the reason why these ranks cannot use Path::kShared; empty if they can.
std::string AgainstSharing(std::span<const Place> places) {
  if (places.size() > kMaxShared) return fmt::format("more than {} ranks", kMaxShared);
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    if (places[rank].is_mig != 0)
      return fmt::format("{} has a MIG slice, which CUDA IPC does not support", Who(places, rank));
    if (places[rank].host != places.front().host)
      return fmt::format("{} and {} are on different hosts or in different containers", Who(places, 0),
                         Who(places, rank));
    if (places[rank].shares == 0)
      return fmt::format("{} cannot export memory or events of its GPU (CUDA IPC)", Who(places, rank));
    for (std::size_t other = 0; other < rank; ++other) {
      if (places[other].process == places[rank].process)
        return fmt::format("ranks {} and {} are threads of one process, which CUDA IPC does not support",
                           other, rank);
    }
    if (places[rank].gpu != places.front().gpu)
      return fmt::format("{} and {} have different GPUs", Who(places, 0), Who(places, rank));
  }
  return "";
}

Choice Fail(std::string trouble) {
  return {Path::kStaged, "", std::move(trouble)};
}

}  // namespace

std::optional<Wish> ReadWish(std::string_view text) {
  if (text == "auto") return Wish::kAuto;
  if (text == "nccl") return Wish::kNccl;
  if (text == "shared") return Wish::kShared;
  if (text == "staged") return Wish::kStaged;
  return std::nullopt;
}

Choice Choose(std::span<const Place> places) {
  const Wish wish = places.front().wish;
  std::set<std::array<unsigned char, 16>> gpus;
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    const Place& place = places[rank];
    if (place.trouble.front() != '\0')
      return Fail(fmt::format("{}: {}", Who(places, rank), place.trouble.data()));
    if (place.wish != wish) {
      return Fail(fmt::format(
          "{} and {} were started with different WARREN_DEVICE_PATH; it must be the same on all ranks",
          Who(places, 0), Who(places, rank)));
    }
    gpus.insert(place.gpu);
  }

  const std::string against_nccl = AgainstNccl(places);
  const std::string against_sharing = AgainstSharing(places);
  if (wish == Wish::kNccl) {
    if (!against_nccl.empty()) return Fail(fmt::format("WARREN_DEVICE_PATH=nccl: {}", against_nccl));
    return {Path::kNccl, "WARREN_DEVICE_PATH=nccl", ""};
  }
  if (wish == Wish::kShared) {
    if (!against_sharing.empty()) return Fail(fmt::format("WARREN_DEVICE_PATH=shared: {}", against_sharing));
    return {Path::kShared, "WARREN_DEVICE_PATH=shared", ""};
  }
  if (wish == Wish::kStaged) return {Path::kStaged, "WARREN_DEVICE_PATH=staged", ""};
  if (places.size() == 1) return {Path::kAlone, "one rank", ""};
  const bool one_each = gpus.size() == places.size();
  if (one_each && against_nccl.empty())
    return {Path::kNccl, fmt::format("{} ranks, one GPU each", places.size()), ""};
  if (!one_each && against_sharing.empty())
    return {Path::kShared, fmt::format("{} ranks share one GPU", places.size()), ""};
  return {Path::kStaged,
          one_each
              ? against_nccl
              : fmt::format("{} ranks share {} GPUs, and {}", places.size(), gpus.size(), against_sharing),
          ""};
}

std::string NcclVersionText(int code) {
  // Before 2.9 the minor version had one digit.
  const bool old = code < 10000;
  const int major = old ? code / 1000 : code / 10000;
  const int minor = old ? code / 100 % 10 : code / 100 % 100;
  return fmt::format("{}.{}.{}", major, minor, code % 100);
}

}  // namespace warren::device
