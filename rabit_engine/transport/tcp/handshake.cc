#include "rabit_engine/transport/tcp/handshake.h"

#include <algorithm>
#include <cstring>

namespace warren::tcp {

bool MayBeHello(std::span<const std::byte> bytes) {
  const Hello hello;
  return std::memcmp(bytes.data(), &hello.magic, std::min(bytes.size(), sizeof hello.magic)) == 0;
}

std::optional<Hello> ReadHello(std::span<const std::byte, sizeof(Hello)> bytes, std::uint64_t job_secret,
                               int to, int world_size) {
  Hello hello;
  std::memcpy(&hello, bytes.data(), sizeof hello);
  const bool ours = hello.magic == Hello::kMagic && hello.version == Hello::kVersion &&
                    hello.job_secret == job_secret && hello.to == to;
  if (!ours || hello.from < 0 || hello.from >= world_size || hello.from == to) return std::nullopt;
  if (hello.kind == HelloKind::kLink || hello.kind == HelloKind::kQuestion) return hello;
  if (hello.kind == HelloKind::kAlarm && hello.lost >= 0 && hello.lost < world_size) return hello;
  return std::nullopt;
}

}  // namespace warren::tcp
