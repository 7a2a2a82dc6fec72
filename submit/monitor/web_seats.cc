#include "submit/monitor/web_seats.h"

#include <algorithm>

namespace warren::submit {

std::optional<std::size_t> SeatToFree(const std::vector<WebSeat>& seats) {
  const auto is_kept = [](const WebSeat& seat) { return seat.knows_token && !seat.is_waiting; };
  const auto goes_before = [&](const WebSeat& one, const WebSeat& other) {
    if (is_kept(one) != is_kept(other)) return is_kept(other);
    if (one.knows_token != other.knows_token) return other.knows_token;
    return one.silent_since < other.silent_since;
  };
  const auto first = std::min_element(seats.begin(), seats.end(), goes_before);
  if (first == seats.end() || is_kept(*first)) return std::nullopt;
  return static_cast<std::size_t>(first - seats.begin());
}

}  // namespace warren::submit
