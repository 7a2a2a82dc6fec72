// What two ranks say when one connects to the other's listening socket: 32 bytes each way for a link, or 32
// bytes one way for an alarm. Pure: bytes and values.
//
//   connector                     acceptor
//   kLink, from, to          ->
//                            <-   kLink, from, to        now both have a link: raw bytes follow
//
//   kAlarm, from, to, lost   ->                          `from` gives up because rank `lost` is lost; closes
//
// All fields are in native byte order; a peer of another order fails at the magic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace warren::tcp {

enum class HelloKind : std::uint16_t { kLink = 1, kAlarm = 2 };

/// Sent as it lies in memory.
struct Hello {
  static constexpr std::uint32_t kMagic = 0x4e525257;  // "WRRN"
  static constexpr std::uint16_t kVersion = 1;

  std::uint32_t magic = kMagic;
  std::uint16_t version = kVersion;
  HelloKind kind = HelloKind::kLink;
  std::uint64_t job_secret = 0;  ///< nobody outside the job knows it
  std::int32_t from = -1;
  std::int32_t to = -1;
  std::int32_t lost = -1;  ///< of an alarm
  std::int32_t reserved = 0;
};
static_assert(sizeof(Hello) == 32);

/// The hello in these bytes when it is one of this job for rank `to`, from another rank of the world.
std::optional<Hello> ReadHello(std::span<const std::byte, sizeof(Hello)> bytes, std::uint64_t job_secret,
                               int to, int world_size);

}  // namespace warren::tcp
