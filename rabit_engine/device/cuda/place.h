// The location of a rank's device memory, and the choice of the path by which the ranks of a job reach each
// other's memory. Plain values, so that the choice can be tested without a GPU.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace warren::device {

/// The path requested by the user (WARREN_DEVICE_PATH).
enum class Wish : std::int32_t { kAuto, kNccl, kShared, kStaged };
std::optional<Wish> ReadWish(std::string_view text);

/// A rank's description of its device, for all other ranks. Sent in its memory layout, between ranks of the
/// same build.
struct Place {
  std::array<unsigned char, 16> gpu{};  ///< the GPU's UUID
  std::uint64_t host = 0;               ///< a number equal for processes that can use CUDA IPC together
  std::int32_t nccl = 0;                ///< NCCL's version code; 0 if it could not be loaded
  std::int32_t is_mig = 0;              ///< whether the GPU is a MIG slice, which NCCL and IPC do not support
  std::int32_t shares = 0;              ///< whether the device's memory and events can be exported (CUDA IPC)
  std::int32_t device = 0;              ///< the GPU's number in this process
  std::int32_t process = 0;             ///< the process id
  std::int32_t tls = 0;                 ///< whether traffic between hosts must be encrypted
  Wish wish = Wish::kAuto;
  std::array<char, 64> gpu_name{};
  std::array<char, 64> host_name{};
  std::array<char, 512> no_nccl{};  ///< why NCCL is not available
  std::array<char, 512> trouble{};  ///< why this rank cannot take part; empty if it can
};

enum class Path {
  kAlone,   ///< a single rank
  kNccl,    ///< NCCL, with one GPU per rank
  kShared,  ///< CUDA IPC, with all ranks on one GPU
  kStaged   ///< pinned memory and the engine's own collectives
};

/// The maximum number of ranks that can use Path::kShared; limited because the pointers to all ranks' buffers
/// are kernel arguments.
inline constexpr int kMaxShared = 64;

struct Choice {
  Path path = Path::kStaged;
  std::string why;      ///< the reason, for users, e.g. "8 ranks, one GPU each"
  std::string trouble;  ///< why device collectives are not available; empty if they are
};

/// Chooses the path. `places` is indexed by rank. The result is the same on all ranks.
Choice Choose(std::span<const Place> places);

/// Returns NCCL's version code as text, e.g. "2.28.9".
std::string NcclVersionText(int code);

}  // namespace warren::device
