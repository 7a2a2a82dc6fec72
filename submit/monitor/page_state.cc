#include "submit/monitor/page_state.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "submit/monitor/json_text.h"
#include "tracker/topology.h"

namespace warren::submit {
namespace {

/// Rounds to tenths, so that invisible changes are not sent.
double Tenths(double seconds) {
  return std::round(seconds * 10) / 10;
}

/// Rounds a share to a whole percentage.
double Hundredths(double share) {
  return std::round(share * 100) / 100;
}

/// Rounds to three significant digits, or to hundredths if the number is below 1.
double Rough(double number) {
  if (!(std::abs(number) >= 1)) return std::round(number * 100) / 100;
  const double unit = std::pow(10, std::floor(std::log10(std::abs(number))) - 2);
  return std::round(number / unit) * unit;
}

std::int64_t Mebibytes(std::uint64_t bytes) {
  return static_cast<std::int64_t>((bytes + (1U << 19)) >> 20);
}

using submit::AppendJson;

template <typename Value>
void AppendJson(std::string& json, const std::optional<Value>& value) {
  if (value) {
    AppendJson(json, *value);
  } else {
    json += "null";
  }
}

// Members that are lists. Each entry is written as an array, which is the shortest form.

void AppendJson(std::string& json, const std::vector<wire::ReportedTraffic>& traffic) {
  json += '[';
  for (const wire::ReportedTraffic& one : traffic) {
    json += json.back() == '[' ? "[" : ",[";
    AppendJson(json, std::string_view(one.collective));
    json += ',';
    AppendJson(json, std::string_view(one.algorithm));
    json += ',';
    AppendJson(json, one.calls);
    json += ',';
    AppendJson(json, one.bytes);
    json += ',';
    AppendJson(json, Tenths(one.seconds));
    json += ']';
  }
  json += ']';
}

/// The tree of links (tracker/topology.h) of this many ranks. It is drawn only if there are at most
/// kMaxDrawnRanks.
struct Tree {
  int ranks = 0;
  friend bool operator==(const Tree& a, const Tree& b) { return a.ranks == b.ranks; }
};
constexpr int kMaxDrawnRanks = 512;

/// Appends a list with each rank's parent (-1 for rank 0). The list is empty if there are more than
/// kMaxDrawnRanks ranks.
void AppendJson(std::string& json, Tree tree) {
  json += '[';
  if (tree.ranks > 0 && tree.ranks <= kMaxDrawnRanks) {
    const tracker::Topology topology(tree.ranks);
    for (int rank = 0; rank < tree.ranks; ++rank) {
      if (rank > 0) json += ',';
      AppendJson(json, std::int64_t{topology.parent(rank)});
    }
  }
  json += ']';
}

bool Same(const std::vector<wire::ReportedTraffic>& a, const std::vector<wire::ReportedTraffic>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const wire::ReportedTraffic& one, const wire::ReportedTraffic& other) {
                      return one.calls == other.calls && one.bytes == other.bytes &&
                             one.collective == other.collective && one.algorithm == other.algorithm;
                    });
}

/// NaN equals NaN here. Otherwise, a metric that is NaN would count as changed in every update.
bool Same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

template <typename Value>
bool Same(const Value& a, const Value& b) {
  return a == b;
}

/// A member of the JSON object for a `Whole`, which is the job or a worker.
template <typename Whole>
struct Member {
  std::string_view name;
  bool (*same)(const Whole&, const Whole&);
  void (*append)(std::string&, const Whole&);
};

/// Makes the member with this name; `Get` returns its value and captures nothing.
template <typename Whole, typename Get>
constexpr Member<Whole> MemberOf(std::string_view name, Get) {
  return {name, [](const Whole& a, const Whole& b) { return Same(Get{}(a), Get{}(b)); },
          [](std::string& json, const Whole& whole) { AppendJson(json, Get{}(whole)); }};
}

template <typename Get>
constexpr Member<JobSnapshot> OfJob(std::string_view name, Get get) {
  return MemberOf<JobSnapshot>(name, get);
}

template <typename Get>
constexpr Member<WorkerSnapshot> OfWorker(std::string_view name, Get get) {
  return MemberOf<WorkerSnapshot>(name, get);
}

std::int64_t MillisecondsOf(std::chrono::system_clock::time_point when) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(when.time_since_epoch()).count();
}

// clang-format off
constexpr std::array kJobMembers = {
    OfJob("name", [](const JobSnapshot& j) { return std::string_view(j.name); }),
    OfJob("command", [](const JobSnapshot& j) { return std::string_view(j.command); }),
    OfJob("cluster", [](const JobSnapshot& j) { return std::string_view(j.cluster); }),
    OfJob("began", [](const JobSnapshot& j) { return MillisecondsOf(j.began); }),
    OfJob("seconds", [](const JobSnapshot& j) { return Tenths(j.seconds); }),
    OfJob("over", [](const JobSnapshot& j) { return j.is_over; }),
    OfJob("exit_code", [](const JobSnapshot& j) { return std::int64_t{j.exit_code}; }),
    OfJob("story", [](const JobSnapshot& j) { return std::string_view(j.story); }),
    OfJob("restarts", [](const JobSnapshot& j) { return std::int64_t{j.job_restarts}; }),
    OfJob("world_size", [](const JobSnapshot& j) { return std::int64_t{j.world_size}; }),
    OfJob("generation", [](const JobSnapshot& j) { return std::int64_t{j.generation}; }),
    OfJob("between_generations", [](const JobSnapshot& j) { return Tenths(j.seconds_between_generations); }),
    OfJob("tree", [](const JobSnapshot& j) { return Tree{j.world_size}; }),
    OfJob("round", [](const JobSnapshot& j) { return j.round; }),
    OfJob("rounds", [](const JobSnapshot& j) { return j.rounds; }),
    OfJob("seconds_left", [](const JobSnapshot& j) {
      return j.seconds_left ? std::optional<double>(Tenths(*j.seconds_left)) : std::nullopt; }),
    OfJob("rows_per_second", [](const JobSnapshot& j) { return Rough(j.rows_per_second); }),
};

constexpr std::array kWorkerMembers = {
    OfWorker("name", [](const WorkerSnapshot& w) { return std::string_view(w.name); }),
    OfWorker("role", [](const WorkerSnapshot& w) { return std::string_view(w.role); }),
    OfWorker("rank", [](const WorkerSnapshot& w) {
      return w.rank ? std::optional<std::int64_t>(*w.rank) : std::nullopt; }),
    OfWorker("host", [](const WorkerSnapshot& w) { return std::string_view(w.host); }),
    OfWorker("pid", [](const WorkerSnapshot& w) { return std::int64_t{w.pid}; }),
    OfWorker("state", [](const WorkerSnapshot& w) { return std::string_view(Name(w.state)); }),
    OfWorker("restarts", [](const WorkerSnapshot& w) { return std::int64_t{w.restarts}; }),
    OfWorker("trouble", [](const WorkerSnapshot& w) { return std::string_view(w.trouble); }),
    OfWorker("stack", [](const WorkerSnapshot& w) { return std::string_view(w.stack); }),
    // Process.
    OfWorker("cores", [](const WorkerSnapshot& w) { return Tenths(w.cores_used); }),
    OfWorker("cpu", [](const WorkerSnapshot& w) { return w.sample ? std::round(w.sample->cpu_seconds) : 0; }),
    OfWorker("mib", [](const WorkerSnapshot& w) { return w.sample ? Mebibytes(w.sample->resident_bytes) : 0; }),
    // Collectives. The time in a call is rounded down to whole seconds, because only long times matter.
    OfWorker("call", [](const WorkerSnapshot& w) { return w.call ? std::string_view(w.call->name) : ""; }),
    OfWorker("inside", [](const WorkerSnapshot& w) {
      return w.call && w.call->inside ? std::floor(w.call->seconds) : -1; }),
    OfWorker("collectives", [](const WorkerSnapshot& w) { return Tenths(w.seconds_in_collectives); }),
    OfWorker("waited", [](const WorkerSnapshot& w) { return Tenths(w.seconds_waited); }),
    OfWorker("made_wait", [](const WorkerSnapshot& w) { return Tenths(w.seconds_made_wait); }),
    OfWorker("makes_wait", [](const WorkerSnapshot& w) { return Hundredths(w.makes_wait); }),
    OfWorker("makes_wait_now", [](const WorkerSnapshot& w) { return Hundredths(w.makes_wait_now); }),
    OfWorker("traffic", [](const WorkerSnapshot& w) -> const auto& { return w.traffic; }),
    // Data being read.
    OfWorker("reads", [](const WorkerSnapshot& w) {
      return w.reading ? std::string_view(w.reading->what) : ""; }),
    OfWorker("rows", [](const WorkerSnapshot& w) { return w.reading ? Rough(double(w.reading->rows)) : 0; }),
    OfWorker("read_share", [](const WorkerSnapshot& w) {
      const bool known = w.reading && w.reading->total_bytes > 0;
      return known ? Rough(double(w.reading->bytes) / double(w.reading->total_bytes)) : 0; }),
};
// clang-format on

void AppendName(std::string& json, std::string_view name) {
  if (json.back() != '{') json += ',';
  json += '"';
  json += name;
  json += "\":";
}

template <typename Members, typename Whole>
void AppendAll(std::string& json, const Members& members, const Whole& whole) {
  for (const auto& member : members) {
    AppendName(json, member.name);
    member.append(json, whole);
  }
}

/// Returns whether anything was appended.
template <typename Members, typename Whole>
bool AppendChanged(std::string& json, const Members& members, const Whole& before, const Whole& now) {
  bool any = false;
  for (const auto& member : members) {
    if (member.same(before, now)) continue;
    AppendName(json, member.name);
    member.append(json, now);
    any = true;
  }
  return any;
}

void Append(std::string& json, const Evaluation& evaluation) {
  json += json.back() == '[' ? "[" : ",[";
  AppendJson(json, evaluation.round);
  json += ',';
  AppendJson(json, Tenths(evaluation.seconds));
  json += ",{";
  for (const auto& [name, value] : evaluation.metrics) {
    if (json.back() != '{') json += ',';
    AppendJson(json, std::string_view(name));
    json += ':';
    AppendJson(json, value);
  }
  json += "}]";
}

void Append(std::string& json, const JobEvent& event) {
  json += json.back() == '[' ? "[" : ",[";
  AppendJson(json, Tenths(event.seconds));
  json += ',';
  AppendJson(json, Name(event.severity));
  json += ',';
  AppendJson(json, std::string_view(event.text));
  json += ']';
}

template <typename Iterator>
void AppendList(std::string& json, std::string_view name, Iterator first, Iterator last) {
  AppendName(json, name);
  json += '[';
  for (; first != last; ++first) Append(json, *first);
  json += ']';
}

bool SameEvaluation(const Evaluation& a, const Evaluation& b) {
  return a.seconds == b.seconds && std::equal(a.metrics.begin(), a.metrics.end(), b.metrics.begin(),
                                              b.metrics.end(), [](const auto& one, const auto& other) {
                                                return one.first == other.first &&
                                                       Same(one.second, other.second);
                                              });
}

/// The evaluations that are new or differ from `before`; nullopt if rounds have disappeared.
std::optional<std::vector<Evaluation>> ChangedEvaluations(const std::vector<Evaluation>& before,
                                                          const std::vector<Evaluation>& now) {
  std::vector<Evaluation> changed;
  auto old = before.begin();
  for (const Evaluation& evaluation : now) {
    if (old != before.end() && old->round < evaluation.round) return std::nullopt;
    const bool is_known = old != before.end() && old->round == evaluation.round;
    if (!is_known || !SameEvaluation(*old, evaluation)) changed.push_back(evaluation);
    if (is_known) ++old;
  }
  if (old != before.end()) return std::nullopt;
  return changed;
}

/// The index of the first event after the last event of `before`. That event must be searched for, because
/// events have no numbers and the oldest are dropped. If several events equal it, the latest of them counts.
std::size_t FirstNewEvent(const std::vector<JobEvent>& before, const std::vector<JobEvent>& now) {
  if (before.empty()) return 0;
  const JobEvent& last = before.back();
  const auto found = std::find_if(now.rbegin(), now.rend(), [&](const JobEvent& event) {
    return event.seconds == last.seconds && event.text == last.text;
  });
  return static_cast<std::size_t>(now.rend() - found);
}

}  // namespace

std::string PageState(const JobSnapshot& job) {
  std::string json = "{\"job\":{";
  AppendAll(json, kJobMembers, job);
  json += "},\"workers\":[";
  for (std::size_t i = 0; i < job.workers.size(); ++i) {
    json += i == 0 ? "{" : ",{";
    AppendName(json, "i");
    AppendJson(json, std::uint64_t{i});
    AppendAll(json, kWorkerMembers, job.workers[i]);
    json += '}';
  }
  json += ']';
  AppendList(json, "evaluations", job.evaluations.begin(), job.evaluations.end());
  AppendList(json, "events", job.events.begin(), job.events.end());
  return json + '}';
}

std::string PageChange(const JobSnapshot& before, const JobSnapshot& now) {
  std::string json = "{\"job\":{";
  AppendChanged(json, kJobMembers, before, now);
  json += "},\"workers\":[";
  for (std::size_t i = 0; i < std::min(before.workers.size(), now.workers.size()); ++i) {
    const std::size_t begin = json.size();
    json += json.back() == '[' ? "{" : ",{";
    AppendName(json, "i");
    AppendJson(json, std::uint64_t{i});
    if (AppendChanged(json, kWorkerMembers, before.workers[i], now.workers[i])) {
      json += '}';
    } else {
      json.resize(begin);
    }
  }
  json += ']';
  const auto changed = ChangedEvaluations(before.evaluations, now.evaluations);
  const std::vector<Evaluation>& evaluations = changed ? *changed : now.evaluations;
  if (!changed) {
    AppendName(json, "all_evaluations");
    AppendJson(json, true);
  }
  AppendList(json, "evaluations", evaluations.begin(), evaluations.end());
  const auto first = static_cast<std::ptrdiff_t>(FirstNewEvent(before.events, now.events));
  AppendList(json, "events", now.events.begin() + first, now.events.end());
  return json + '}';
}

std::string EvaluationsJson(const JobSnapshot& job, std::size_t most) {
  const std::size_t count = job.evaluations.size();
  const std::size_t step = (count + most - 1) / std::max<std::size_t>(most, 1);
  std::vector<Evaluation> kept;
  for (std::size_t back = 0; back < count; back += step) kept.push_back(job.evaluations[count - 1 - back]);
  std::reverse(kept.begin(), kept.end());
  std::string json = "{";
  AppendList(json, "evaluations", kept.begin(), kept.end());
  return json + '}';
}

}  // namespace warren::submit
