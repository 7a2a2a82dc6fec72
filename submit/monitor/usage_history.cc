#include "submit/monitor/usage_history.h"

#include <algorithm>
#include <cmath>

#include "submit/monitor/json_text.h"

namespace warren::submit {
namespace {

constexpr std::size_t kMostValues = 60'000;
constexpr std::size_t kLeastPoints = 30;
constexpr std::size_t kMostPoints = 240;
/// Tolerance in IsDue, in seconds: timers may fire this early.
constexpr double kEarly = 0.1;

/// Appends a list of `count` elements; `append(i)` appends the element i.
template <typename Append>
void AppendList(std::string& json, std::size_t count, const Append& append) {
  json += '[';
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) json += ',';
    append(i);
  }
  json += ']';
}

}  // namespace

UsageHistory::UsageHistory(std::size_t processes)
    : processes_(processes),
      most_points_(std::clamp(kMostValues / std::max<std::size_t>(processes, 1), kLeastPoints, kMostPoints)) {
}

bool UsageHistory::IsDue(double seconds) const {
  return points_.empty() || seconds >= points_.back().seconds + interval_ - kEarly;
}

void UsageHistory::Add(double seconds, const std::vector<Usage>& usage) {
  points_.push_back({seconds, usage});
  if (points_.size() <= most_points_) return;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < points_.size(); i += 2) std::swap(points_[kept++], points_[i]);
  points_.resize(kept);
  interval_ *= 2;
}

std::string UsageHistory::Json() const {
  std::string json = "{\"seconds\":";
  AppendList(json, points_.size(),
             [&](std::size_t i) { AppendJson(json, std::round(points_[i].seconds * 10) / 10); });
  const auto append_all = [&](auto value_of) {
    AppendList(json, processes_, [&](std::size_t process) {
      AppendList(json, points_.size(),
                 [&](std::size_t i) { AppendJson(json, value_of(points_[i].usage[process])); });
    });
  };
  json += ",\"cores\":";
  append_all([](const Usage& usage) { return std::round(usage.cores * 10) / 10; });
  json += ",\"mib\":";
  append_all([](const Usage& usage) { return usage.resident_bytes >> 20; });
  return json + '}';
}

}  // namespace warren::submit
