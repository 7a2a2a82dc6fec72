// What two ranks say when one connects to the other's listening socket: 64 bytes each way for a link, or 64
// bytes one way for an alarm or a question. Pure: bytes and values.
//
//   connector                     acceptor
//   kLink, from, to          ->
//                            <-   kLink, from, to        now both have a link: raw bytes follow
//
//   kAlarm, from, to, lost   ->                          `from` gives up because rank `lost` is lost; closes
//   kQuestion, from, to, call ->                         `from` waits in this call for `to`; closes
//
// All fields are in native byte order; a peer of another order fails at the magic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "rabit_engine/transport/call_tag.h"

namespace warren::tcp {

enum class HelloKind : std::uint16_t { kLink = 1, kAlarm = 2, kQuestion = 3 };

/// Sent as it lies in memory.
struct Hello {
  static constexpr std::uint32_t kMagic = 0x4e525257;  // "WRRN"
  static constexpr std::uint16_t kVersion = 2;

  std::uint32_t magic = kMagic;
  std::uint16_t version = kVersion;
  HelloKind kind = HelloKind::kLink;
  std::uint64_t job_secret = 0;  ///< nobody outside the job knows it
  std::int32_t from = -1;
  std::int32_t to = -1;
  std::int32_t lost = -1;  ///< of an alarm
  std::int32_t reserved = 0;
  CallTag call;  ///< of a question
};
static_assert(sizeof(Hello) == 64);

/// False when these bytes begin no hello: a stranger's.
bool MayBeHello(std::span<const std::byte> bytes);

/// The hello in these bytes when it is one of this job for rank `to`, from another rank of the world.
std::optional<Hello> ReadHello(std::span<const std::byte, sizeof(Hello)> bytes, std::uint64_t job_secret,
                               int to, int world_size);

}  // namespace warren::tcp
