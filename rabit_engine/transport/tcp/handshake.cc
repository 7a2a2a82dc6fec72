#include "rabit_engine/transport/tcp/handshake.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace warren::tcp {
namespace {

using wire::BytesOf;

wire::Digest ProofOf(const Hello& hello, const LinkKey& key, const wire::Nonce& asked) {
  const std::string_view fields(reinterpret_cast<const char*>(&hello), offsetof(Hello, proof));
  return wire::HmacSha256(BytesOf(key), {"hello", fields, BytesOf(asked)});
}

}  // namespace

bool MayBeHello(std::span<const std::byte> bytes) {
  const Hello hello;
  return std::memcmp(bytes.data(), &hello.magic, std::min(bytes.size(), sizeof hello.magic)) == 0;
}

Hello Proved(Hello hello, const LinkKey& key, const wire::Nonce& asked) {
  hello.nonce = wire::RandomNonce();
  hello.proof = ProofOf(hello, key, asked);
  return hello;
}

std::optional<Hello> ReadHello(std::span<const std::byte, sizeof(Hello)> bytes, const LinkKey& key, int to,
                               int world_size, const wire::Nonce& asked) {
  Hello hello;
  std::memcpy(&hello, bytes.data(), sizeof hello);
  const bool ours = hello.magic == Hello::kMagic && hello.version == Hello::kVersion && hello.to == to &&
                    wire::Same(BytesOf(hello.proof), BytesOf(ProofOf(hello, key, asked)));
  if (!ours || hello.from < 0 || hello.from >= world_size || hello.from == to) return std::nullopt;
  const auto is_rank = [world_size](int rank) { return rank >= 0 && rank < world_size; };
  switch (hello.kind) {
    case HelloKind::kLink:
    case HelloKind::kQuestion:
    case HelloKind::kDoYouWait:
    case HelloKind::kIWait:
      return hello;
    case HelloKind::kAlarm:
      if (is_rank(hello.lost)) return hello;
      break;
    case HelloKind::kProbe:
      if (is_rank(hello.probe.origin) && is_rank(hello.probe.waiter)) return hello;
      break;
  }
  return std::nullopt;
}

wire::Digest LinkProof(const LinkKey& key, const Hello& hello, const Hello& answer) {
  return wire::HmacSha256(BytesOf(key), {"link", BytesOf(hello.nonce), BytesOf(answer.nonce)});
}

}  // namespace warren::tcp
