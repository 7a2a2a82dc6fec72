// Which connection to the job's web server makes room for a new one when there are as many as there may be.
// Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

namespace warren::submit {

/// A connection, as far as this question goes.
struct WebSeat {
  bool knows_token = false;  ///< a request on it had the page's token
  bool is_waiting = true;    ///< for a request; else it is being answered, or reads events
  std::chrono::steady_clock::time_point silent_since;  ///< it was accepted, or its last request came
};

/// The place in `seats` of the connection to close; nullopt if none is to be closed. Strangers go before
/// readers of the page, who go only between two requests; of several, the one that has been silent for
/// longest goes. So connections that say nothing keep nobody out.
std::optional<std::size_t> SeatToFree(const std::vector<WebSeat>& seats);

}  // namespace warren::submit
