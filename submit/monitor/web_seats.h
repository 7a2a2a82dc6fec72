// Chooses the connection to the job's web server that is closed to make room for a new one when the limit is
// reached. Does no I/O.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

namespace warren::submit {

/// The properties of a connection that matter for this choice.
struct WebSeat {
  bool knows_token = false;  ///< a request on it had the page's token
  /// Whether the connection waits for a request. Otherwise, a request is being answered, or the peer reads
  /// events.
  bool is_waiting = true;
  std::chrono::steady_clock::time_point silent_since;  ///< when it was accepted or its last request arrived
};

/// Returns the index in `seats` of the connection to close; nullopt if none may be closed. Connections
/// without the token are closed first. Connections with the token are closed only between two requests. Among
/// equals, the connection that has been silent longest is closed. Thus silent connections cannot keep readers
/// of the page out.
std::optional<std::size_t> SeatToFree(const std::vector<WebSeat>& seats);

}  // namespace warren::submit
