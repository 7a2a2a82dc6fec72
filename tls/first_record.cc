#include "tls/first_record.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <array>
#include <cerrno>
#include <cstddef>

#include "posix/sockets.h"
#include "tls/session.h"

namespace warren::tls {
namespace {

constexpr std::size_t kHeadBytes = 5;     // RFC 8446, 5.1: type, version, length
constexpr std::size_t kMostBytes = 4096;  // the first records of Warren's clients have about 250 bytes

}  // namespace

FirstRecord LookAtFirstRecord(int fd) {
  std::array<unsigned char, kHeadBytes + kMostBytes> bytes;
  const ssize_t count = recv(fd, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return FirstRecord::kIncomplete;
  if (count <= 0 || bytes[0] != static_cast<unsigned char>(kFirstByte)) return FirstRecord::kNone;
  const auto here = static_cast<std::size_t>(count);
  const std::size_t length = here < kHeadBytes ? 0 : std::size_t{bytes[3]} << 8 | bytes[4];
  if (length > kMostBytes) return FirstRecord::kNone;
  const std::size_t wanted = kHeadBytes + length;
  const bool is_whole = here >= wanted;
  const int readable_at = is_whole ? 1 : static_cast<int>(wanted);
  setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &readable_at, sizeof readable_at);
  if (is_whole) return FirstRecord::kWhole;
  pollfd end{fd, posix::kPeerDone, 0};
  return poll(&end, 1, 0) > 0 ? FirstRecord::kNone : FirstRecord::kIncomplete;
}

}  // namespace warren::tls
