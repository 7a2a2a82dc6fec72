#include "wire/introduction.h"

#include <algorithm>

namespace warren::wire {

IntroductionKeys::IntroductionKeys(const JobToken& token)
    : claim_(BytesOf(token.Derive("claim"))),
      worker_(BytesOf(token.Derive("worker"))),
      tracker_(BytesOf(token.Derive("tracker"))) {}

Digest IntroductionKeys::Claim(const Nonce& of_worker) const {
  return claim_.Code({BytesOf(of_worker)});
}

Digest IntroductionKeys::Proof(Introduced who, const Nonce& of_worker, const Nonce& of_tracker) const {
  return (who == Introduced::kWorker ? worker_ : tracker_).Code({BytesOf(of_worker), BytesOf(of_tracker)});
}

std::string IntroductionKeys::Hello(const Nonce& of_worker) const {
  return EncodeNonce(of_worker).append(BytesOf(Claim(of_worker)));
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
