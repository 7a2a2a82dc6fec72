// Where a rank's device memory is, and by which path the ranks of a job reach each other's. Plain values, so
// that the choice can be tested without a GPU.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace warren::device {

/// WARREN_DEVICE_PATH: what the user wants.
enum class Wish : std::int32_t { kAuto, kNccl, kShared, kStaged };
std::optional<Wish> ReadWish(std::string_view text);

/// What a rank tells all others. Trivially copyable: it travels as it is between ranks of one build.
struct Place {
  std::array<unsigned char, 16> gpu{};  ///< its UUID
  std::uint64_t host = 0;               ///< equal where processes can map each other's device memory
  std::int32_t nccl = 0;                ///< NCCL's version code; 0: it could not be loaded
  std::int32_t is_mig = 0;              ///< a slice of a GPU, which NCCL and IPC do not serve
  std::int32_t shares = 0;              ///< whether its memory and events can be exported (CUDA IPC)
  std::int32_t device = 0;              ///< as this process counts
  std::int32_t process = 0;             ///< its number
  std::int32_t tls = 0;                 ///< what goes to other hosts has to be encrypted
  Wish wish = Wish::kAuto;
  std::array<char, 64> gpu_name{};
  std::array<char, 64> host_name{};
  std::array<char, 512> no_nccl{};  ///< why there is no NCCL
  std::array<char, 512> trouble{};  ///< why this rank cannot take part; empty: it can
};

enum class Path {
  kAlone,   ///< a world of one
  kNccl,    ///< NCCL: a GPU for each rank
  kShared,  ///< all ranks on one GPU, in each other's memory by CUDA IPC
  kStaged   ///< through pinned memory and the engine's own collectives
};

/// The most ranks that share a GPU by IPC: their pointers are arguments of a kernel.
inline constexpr int kMaxShared = 64;

struct Choice {
  Path path = Path::kStaged;
  std::string why;      ///< for people: "each of 8 ranks has a GPU of its own"
  std::string trouble;  ///< not empty: device collectives cannot be had, and this is why
};

/// `places` by rank. All ranks come to the same answer.
Choice Choose(std::span<const Place> places);

/// "2.28.9" of NCCL's code.
std::string NcclVersionText(int code);

}  // namespace warren::device
