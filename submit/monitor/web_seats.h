// Chooses the connection to the job's web server that is closed for a new one when the limit is reached.
// Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

namespace warren::submit {

/// The properties of a connection that matter for this choice.
struct WebSeat {
  bool knows_token = false;  ///< a request on it had the page's token
  bool is_waiting = true;    ///< for a request; else it is being answered or reads events
  std::chrono::steady_clock::time_point silent_since;  ///< since it was accepted or its last request came
};

/// The index in `seats` of the connection to close; nullopt if none may be closed. Connections without the
/// token go first; readers of the page go only between two requests; among equals, the one that has been
/// silent longest goes. So silent connections keep no reader out.
std::optional<std::size_t> SeatToFree(const std::vector<WebSeat>& seats);

}  // namespace warren::submit
