// Detects whether a connection begins with TLS, before anything is read from it or allocated for it. Needs no
// OpenSSL.
#pragma once

namespace warren::tls {

enum class FirstRecord {
  /// The bytes are not TLS, or the first record is too long for a Warren hello, or the connection has ended
  /// or failed before the record was complete.
  kNone,
  kIncomplete,  ///< nothing has arrived yet, or only part of a TLS record
  kWhole        ///< the first record has arrived completely
};

/// Reads the first record without consuming it. A session takes about 50 KiB, so servers create a session
/// only for connections that have sent a whole record. If the record is incomplete, sets SO_RCVLOWAT, so that
/// the socket becomes readable only when more of the record has arrived: first its header, then all of it.
FirstRecord LookAtFirstRecord(int fd);

}  // namespace warren::tls
