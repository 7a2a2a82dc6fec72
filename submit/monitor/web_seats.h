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
  /// Whether it waits for a request; otherwise one is being answered, or the peer reads events.
  bool is_waiting = true;
  std::chrono::steady_clock::time_point silent_since;  ///< when it was accepted or its last request arrived
};

/// The index in `seats` of the connection to close; nullopt if none may be closed. Connections without the
/// token are closed first, readers of the page only between two requests, and among equals the connection
/// that has been silent longest. Silent connections thus cannot keep readers out.
std::optional<std::size_t> SeatToFree(const std::vector<WebSeat>& seats);

}  // namespace warren::submit
