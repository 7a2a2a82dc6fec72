// Whether a connection begins with TLS, before anything is read from it or made for it. Needs no OpenSSL.
#pragma once

namespace warren::tls {

enum class FirstRecord {
  kNone,        ///< it begins otherwise, has a record that is too long for a hello of ours, or ends within it
  kIncomplete,  ///< as far as has come
  kWhole
};

/// Looks without reading. A session takes some 50 KiB, so servers make one for those pending connections
/// only that have sent a whole record: until more of it is there the socket does not count as readable
/// (SO_RCVLOWAT).
FirstRecord LookAtFirstRecord(int fd);

}  // namespace warren::tls
