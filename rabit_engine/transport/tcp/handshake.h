// What two ranks say when one connects to the other's listening socket. Each shows that it knows the secret
// of the job before the other tells it anything, and that it knows it now: what was heard on another
// connection proves nothing. Pure: bytes and values.
//
//   connector                                  acceptor
//   Hello: kLink, from, to, nonce         ->
//                                         <-   Hello: kLink, from, to, nonce    proved for both nonces
//   Proof (32 bytes) for both nonces      ->                                    now raw bytes follow
//
//   Hello: kAlarm, from, to, lost         ->       `from` gives up because rank `lost` is lost, for a
//                                                  `shortage` of its own if it is known; closes
//   Hello: kQuestion, from, to, call      ->       `from` waits in this call for `to`; closes
//   Hello: kProbe, from, to, probe        ->       see WaitProbe; closes
//   Hello: kDoYouWait, from, to           ->       `from` has waited long for `to`; closes. Whoever waits
//   itself Hello: kIWait, from, to               ->       says so, on a connection of its own; closes
//
// All fields are in native byte order; a peer of another order fails at the magic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "rabit_engine/transport/call_tag.h"
#include "rabit_engine/transport/wait_record.h"
#include "wire/job_token.h"

namespace warren::tcp {

/// A secret of the job's ranks, made anew whenever they meet.
using LinkKey = wire::Digest;

enum class HelloKind : std::uint16_t {
  kLink = 1,
  kAlarm = 2,
  kQuestion = 3,
  kProbe = 4,
  kDoYouWait = 5,
  kIWait = 6
};

/// The message is sent as it lies in memory.
struct Hello {
  static constexpr std::uint32_t kMagic = 0x4e525257;  // "WRRN"
  static constexpr std::uint16_t kVersion = 4;

  std::uint32_t magic = kMagic;
  std::uint16_t version = kVersion;
  HelloKind kind = HelloKind::kLink;
  std::int32_t from = -1;
  std::int32_t to = -1;
  std::int32_t lost = -1;     ///< alarms: the rank that was lost
  std::int32_t shortage = 0;  ///< alarms: the errno of a shortage, see Transport::Abort
  CallTag call;               ///< questions: the call that `from` waits in
  WaitProbe probe;
  wire::Nonce nonce{};  ///< another in each hello
  wire::Digest proof{};
};
static_assert(sizeof(Hello) == 184);

/// False when these bytes begin no hello: something else has connected.
bool MayBeHello(std::span<const std::byte> bytes);

/// With a nonce and a proof, and nothing else to be changed. `asked`: the nonce of the hello that it answers.
Hello Proved(Hello hello, const LinkKey& key, const wire::Nonce& asked = {});

/// The hello in these bytes when it is one of this job for rank `to`, from another rank of the world, and
/// answers `asked` if it is an answer.
std::optional<Hello> ReadHello(std::span<const std::byte, sizeof(Hello)> bytes, const LinkKey& key, int to,
                               int world_size, const wire::Nonce& asked = {});

/// The connector's last word, for the nonces of its hello and of the answer.
wire::Digest LinkProof(const LinkKey& key, const Hello& hello, const Hello& answer);

}  // namespace warren::tcp
