#include "wire/introduction.h"

#include <algorithm>

namespace warren::wire {

Digest ProofOf(Introduced who, const JobToken& token, const Nonce& of_worker, const Nonce& of_tracker) {
  const Digest key = token.Derive(who == Introduced::kWorker ? "worker" : "tracker");
  return HmacSha256(BytesOf(key), {BytesOf(of_worker), BytesOf(of_tracker)});
}

Digest ClaimOf(const JobToken& token, const Nonce& of_worker) {
  return token.Derive("claim", BytesOf(of_worker));
}

std::string EncodeHello(const JobToken& token, const Nonce& of_worker) {
  return EncodeNonce(of_worker).append(BytesOf(ClaimOf(token, of_worker)));
}

std::string EncodeNonce(const Nonce& nonce) {
  return Writer().Int(kIntroductionMagic).Take().append(BytesOf(nonce));
}

std::optional<Digest> NextDigest(Reader& reader) {
  Digest digest;
  const auto bytes = reader.Bytes(digest.size());
  if (!bytes) return std::nullopt;
  std::copy(bytes->begin(), bytes->end(), digest.begin());
  return digest;
}

}  // namespace warren::wire
