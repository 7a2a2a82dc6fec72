// Detects whether a connection begins with TLS, before anything is read from it or allocated for it. Needs no
// OpenSSL.
#pragma once

namespace warren::tls {

enum class FirstRecord {
  /// Not TLS, or the first record is too long for a Warren hello, or the connection ends within it.
  kNone,
  kIncomplete,  ///< nothing has arrived yet, or only part of a TLS record
  kWhole
};

/// Looks at the first record without consuming it. A session takes about 50 KiB, so servers create a session
/// only for pending connections that have sent a whole record. Sets SO_RCVLOWAT, so that the socket becomes
/// readable when the record's header has arrived, and then only when the whole record has.
FirstRecord LookAtFirstRecord(int fd);

}  // namespace warren::tls
