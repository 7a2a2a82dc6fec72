#include "wire/authentication.h"

#include <algorithm>

namespace warren::wire {

AuthenticationKeys::AuthenticationKeys(const JobToken& token)
    : claim_(BytesOf(token.Derive("claim"))),
      worker_(BytesOf(token.Derive("worker"))),
      tracker_(BytesOf(token.Derive("tracker"))) {}

Digest AuthenticationKeys::Claim(const Nonce& of_worker) const {
  return claim_.Code({BytesOf(of_worker)});
}

Digest AuthenticationKeys::Proof(Party who, const Nonce& of_worker, const Nonce& of_tracker) const {
  return (who == Party::kWorker ? worker_ : tracker_).Code({BytesOf(of_worker), BytesOf(of_tracker)});
}

std::string AuthenticationKeys::Hello(const Nonce& of_worker) const {
  return EncodeNonce(of_worker).append(BytesOf(Claim(of_worker)));
}

std::string EncodeNonce(const Nonce& nonce) {
  return Writer().Int(kAuthenticationMagic).Take().append(BytesOf(nonce));
}

std::optional<Digest> NextDigest(Reader& reader) {
  Digest digest;
  const auto bytes = reader.Bytes(digest.size());
  if (!bytes) return std::nullopt;
  std::copy(bytes->begin(), bytes->end(), digest.begin());
  return digest;
}

}  // namespace warren::wire
