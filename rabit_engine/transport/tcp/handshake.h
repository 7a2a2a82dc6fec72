// The messages between two ranks when one connects to the other's listening socket. Every message proves that
// its sender knows the LinkKey. The proofs that complete a link cover the nonces of both sides, so a proof
// overheard on another connection is useless. Only the first message of a connection can be replayed. This
// file handles only bytes and values and does no I/O.
//
//   connector                                  acceptor
//   Hello: kLink, from, to, nonce         ->
//                                         <-   Hello: kLink, from, to, nonce    proved for both nonces
//   Proof (32 bytes) for both nonces      ->                                    now raw bytes follow
//
//   Hello: kAlarm, from, to, lost         ->       `from` gives up: rank `lost` is lost, or has run out
//                                                  of a resource if `shortage` is set; closes
//   Hello: kQuestion, from, to, call      ->       `from` waits in this call for `to`; closes
//   Hello: kProbe, from, to, probe        ->       see WaitProbe; closes
//   Hello: kDoYouWait, from, to           ->       `from` asks whether `to` is itself waiting; closes
//   Hello: kIWait, from, to               ->       sent by a waiting rank that was asked, on a new
//                                                  connection; closes
//
// All fields are in native byte order; a peer with another byte order is rejected because of the magic
// number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "rabit_engine/call/call_tag.h"
#include "rabit_engine/transport/wait_record.h"
#include "wire/job_token.h"

namespace warren::tcp {

/// A secret shared by the ranks of one communicator; new for each communicator.
using LinkKey = wire::Digest;

enum class HelloKind : std::uint16_t {
  kLink = 1,
  kAlarm = 2,
  kQuestion = 3,
  kProbe = 4,
  kDoYouWait = 5,
  kIWait = 6
};

/// The first message of a connection, and the answer to it; sent in its memory layout.
struct Hello {
  static constexpr std::uint32_t kMagic = 0x4e525257;  // "WRRN"
  static constexpr std::uint16_t kVersion = 5;

  std::uint32_t magic = kMagic;
  std::uint16_t version = kVersion;
  HelloKind kind = HelloKind::kLink;
  std::int32_t from = -1;
  std::int32_t to = -1;
  std::int32_t lost = -1;     ///< alarms: the rank that was lost
  std::int32_t shortage = 0;  ///< alarms: the errno of a resource shortage (Transport::Abort)
  CallTag call;               ///< questions: the call in which `from` waits
  WaitProbe probe;
  wire::Nonce nonce{};  ///< different in each hello
  wire::Digest proof{};
};
static_assert(sizeof(Hello) == 184);

/// Whether a hello can begin with these bytes. If not, another program has connected.
bool MayBeHello(std::span<const std::byte> bytes);

/// Returns the hello with a nonce and a proof added; the hello must not change after that. `asked`: if this
/// hello is an answer, the nonce of the hello that it answers.
Hello Proved(Hello hello, const LinkKey& key, const wire::Nonce& asked = {});

/// Returns the hello in these bytes if it is valid, is from another rank that knows `key`, and is addressed
/// to rank `to`; otherwise nullopt. `asked`: if an answer is expected, the nonce of the hello that it must
/// answer.
std::optional<Hello> ReadHello(std::span<const std::byte, sizeof(Hello)> bytes, const LinkKey& key, int to,
                               int world_size, const wire::Nonce& asked = {});

/// The connector's proof that ends the handshake, for the nonces of its hello and of the answer.
wire::Digest LinkProof(const LinkKey& key, const Hello& hello, const Hello& answer);

}  // namespace warren::tcp
