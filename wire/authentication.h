// How a worker of ours and its tracker prove to each other that they know the token of the job, before
// anything else is said and without the token or anything that could be said again. Pure.
//
//   worker                                            tracker
//   int kAuthenticationMagic, nonce w (32 bytes),
//   claim over w (32 bytes)                      ->
//                                                <-   int kAuthenticationMagic, nonce t (32 bytes)
//   proof of the worker over w and t (32 bytes)  ->
//                                                <-   proof of the tracker over w and t (32 bytes)
//   and then the dialect of its choice, from its magic on
//
// Whoever has a claim or a proof that is wrong gets nothing more: the connection closes. A peer that has no
// claim gets no byte at all; one that repeats a claim that it overheard, a nonce.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "wire/bytes.h"
#include "wire/job_token.h"

namespace warren::wire {

inline constexpr std::int32_t kAuthenticationMagic = 0x494a5257;  // "WRJI"

enum class Party { kWorker, kTracker };

/// What is shown, made from one token.
class AuthenticationKeys {
 public:
  explicit AuthenticationKeys(const JobToken& token);
  /// What the worker begins with.
  Digest Claim(const Nonce& of_worker) const;
  /// What one of the two shows for the nonces of both.
  Digest Proof(Party who, const Nonce& of_worker, const Nonce& of_tracker) const;
  /// The worker's first message.
  std::string Hello(const Nonce& of_worker) const;

 private:
  HmacKey claim_, worker_, tracker_;
};

/// What the tracker answers.
std::string EncodeNonce(const Nonce& of_tracker);

/// One message of 32 bytes, `std::nullopt` until all of it has come.
std::optional<Digest> NextDigest(Reader& reader);

}  // namespace warren::wire
