// Mutual authentication of a Warren worker and its tracker: before any other message, each proves to the
// other that it knows the job's token. Neither the token nor anything that would be accepted as a proof on
// another connection is sent. This file handles only bytes and does no I/O.
//
//   worker                                            tracker
//   int kAuthenticationMagic, nonce w (32 bytes),
//   claim over w (32 bytes)                      ->
//                                                <-   int kAuthenticationMagic, nonce t (32 bytes)
//   proof of the worker over w and t (32 bytes)  ->
//                                                <-   proof of the tracker over w and t (32 bytes)
//   then the worker's dialect, from its magic on
//
// If a claim or proof is wrong, the connection is closed without a further answer. A peer without a valid
// claim receives no byte at all; a peer that replays an overheard claim receives a nonce, but nothing more.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "wire/bytes.h"
#include "wire/job_token.h"

namespace warren::wire {

inline constexpr std::int32_t kAuthenticationMagic = 0x494a5257;  // "WRJI"

enum class Party { kWorker, kTracker };

/// The keys for claims and proofs, derived from one token.
class AuthenticationKeys {
 public:
  explicit AuthenticationKeys(const JobToken& token);
  /// The claim that the worker sends first.
  Digest Claim(const Nonce& of_worker) const;
  /// The proof that `who` sends; it covers the nonces of both parties.
  Digest Proof(Party who, const Nonce& of_worker, const Nonce& of_tracker) const;
  /// The worker's first message: magic, nonce and claim.
  std::string Hello(const Nonce& of_worker) const;

 private:
  HmacKey claim_, worker_, tracker_;
};

/// Encodes the magic and a nonce: the tracker's answer to the worker's hello.
std::string EncodeNonce(const Nonce& of_tracker);

/// Reads a claim, a proof or a nonce (32 bytes); nullopt until it has arrived completely.
std::optional<Digest> NextDigest(Reader& reader);

}  // namespace warren::wire
