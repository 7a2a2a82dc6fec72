#include "submit/trace/job_trace.h"

#include <fmt/format.h>

#include <chrono>

#include "submit/process/planned_process.h"

namespace warren::submit {
namespace {

/// The attributes that describe a lost process. `status`: nullopt if unknown.
Attributes LossAttributes(const TracedProcess& process, const std::optional<ExitStatus>& status) {
  Attributes attributes = {{"warren.lost.process", process.name}};
  if (process.rank) attributes.emplace_back("warren.lost.rank", std::int64_t{*process.rank});
  if (!process.host.empty()) attributes.emplace_back("warren.lost.host", process.host);
  if (!status) return attributes;
  if (status->signal != 0) {
    attributes.emplace_back("warren.lost.signal", SignalName(status->signal));
  } else if (!status->host_lost) {
    attributes.emplace_back("warren.lost.exit_code", std::int64_t{status->code});
  }
  return attributes;
}

void AddEvent(std::optional<Span>& span, SpanEvent event) {
  if (!span) return;
  if (span->events.size() < kMostSpanEvents) {
    span->events.push_back(std::move(event));
  } else {
    ++span->dropped_events;
  }
}

Attributes RoundAttributes(std::int64_t round, std::int64_t rounds, const JobTrace::Metrics& metrics) {
  Attributes attributes = {{"warren.round", round}};
  if (rounds > 0) attributes.emplace_back("warren.rounds", rounds);
  for (const auto& [name, value] : metrics) attributes.emplace_back("warren.metric." + name, value);
  return attributes;
}

}  // namespace

JobTrace::JobTrace(TraceContext context, const std::string& job, Attributes attributes, TimePoint now,
                   std::int64_t now_ns, NewId new_id)
    : context_(std::move(context)), new_id_(std::move(new_id)), began_(now), began_ns_(now_ns) {
  job_ = Begin(job, context_.parent, now);
  job_->attributes = std::move(attributes);
  attempt_id_ = new_id_();
  BeginAttempt(now);
}

std::int64_t JobTrace::NanosecondsAt(TimePoint now) const {
  return began_ns_ + std::chrono::duration_cast<std::chrono::nanoseconds>(now - began_).count();
}

std::string JobTrace::Traceparent() const {
  return fmt::format("00-{}-{}-01", context_.trace_id, attempt_id_);
}

Span JobTrace::Begin(const std::string& name, const std::string& parent, TimePoint now) {
  Span span;
  span.id = new_id_();
  span.parent = parent;
  span.name = name;
  span.begin_ns = NanosecondsAt(now);
  return span;
}

void JobTrace::End(std::optional<Span>& span, TimePoint now) {
  if (!span) return;
  span->end_ns = NanosecondsAt(now);
  ended_.push_back(*std::exchange(span, std::nullopt));
}

void JobTrace::Fail(std::optional<Span>& span, const std::string& why) const {
  if (!span || span->has_failed) return;
  span->has_failed = true;
  span->error = why;
}

void JobTrace::AddCulprit(Span& span, const TracedProcess& culprit) const {
  const auto exit = culprit.index < exits_.size() ? exits_[culprit.index] : std::nullopt;
  for (auto& attribute : LossAttributes(culprit, exit)) span.attributes.push_back(std::move(attribute));
}

// --- attempts ----------------------------------------------------------------------------------------------

void JobTrace::BeginAttempt(TimePoint now) {
  attempt_ = Begin("attempt", job_->id, now);
  attempt_->id = rounds_parent_ = attempt_id_;
  attempt_->attributes = {{"warren.attempt", ++attempts_}};
  start_ = Begin("start", attempt_id_, now);
  round_begins_ = now;
  running_.clear();
  exits_.clear();
  num_running_ = 0;
  linked_ = stopping_ = false;
}

void JobTrace::EndAttempt(bool failed, const std::string& why, const std::optional<TracedProcess>& culprit,
                          TimePoint now) {
  if (!attempt_) return;
  EndRound();
  if (failed) Fail(start_, why);
  End(start_, now);
  if (join_ && failed && !linked_) {
    Fail(join_, fmt::format("{} of {} workers had joined", joined_, expected_));
    End(join_, now);
  }
  join_.reset();
  if (failed) Fail(generation_, why);
  End(generation_, now);
  if (failed) Fail(attempt_, why);
  if (culprit) AddCulprit(*attempt_, *culprit);
  End(attempt_, now);
}

void JobTrace::AttemptEnded(const std::string& why, const std::optional<TracedProcess>& culprit,
                            TimePoint now) {
  EndAttempt(true, why, culprit, now);
  attempt_id_ = new_id_();
}

void JobTrace::BeginsAgain(TimePoint now) {
  BeginAttempt(now);
}

void JobTrace::Finished(int exit_code, const std::string& story, const std::optional<TracedProcess>& culprit,
                        TimePoint now) {
  if (!job_) return;
  const bool failed = exit_code != 0;
  EndAttempt(failed, story, culprit, now);
  if (failed) Fail(job_, story);
  job_->attributes.emplace_back("process.exit.code", std::int64_t{exit_code});
  job_->attributes.emplace_back("warren.attempts", attempts_);
  if (culprit) AddCulprit(*job_, *culprit);
  End(job_, now);
}

// --- processes ---------------------------------------------------------------------------------------------

void JobTrace::Runs(std::size_t index, std::size_t processes, TimePoint now) {
  running_.resize(processes);
  if (running_[index]) return;
  running_[index] = true;
  if (++num_running_ == processes) End(start_, now);
}

void JobTrace::Exited(const TracedProcess& process, const ExitStatus& status, TimePoint now) {
  if (status.ok() || stopping_) return;
  if (exits_.size() <= process.index) exits_.resize(process.index + 1);
  exits_[process.index] = status;
  AddEvent(attempt_, {NanosecondsAt(now), "process lost", LossAttributes(process, status)});
  if (generation_ && process.rank) {
    const std::string who = DescribeProcess(process.name, process.rank, {.host = process.host});
    Fail(generation_, fmt::format("{} {}", who, status.Describe()));
    AddCulprit(*generation_, process);
    EndGeneration(now);
  }
  if (linked_) BeginJoin(true, now);
}

void JobTrace::BeginJoin(bool anew, TimePoint now) {
  if (join_ || !attempt_) return;
  join_ = Begin("join", attempt_id_, now);
  join_is_anew_ = anew;
}

void JobTrace::Joined(int joined, int expected, TimePoint now) {
  joined_ = joined;
  expected_ = expected;
  if (joined > 0) BeginJoin(linked_, now);
}

void JobTrace::Linked(TimePoint now) {
  End(start_, now);
  if (join_) join_->attributes.emplace_back("warren.again", join_is_anew_);
  End(join_, now);
  linked_ = true;
  round_begins_ = now;
}

// --- generations and rounds --------------------------------------------------------------------------------

/// Ends the span of the latest round. Its end_ns is already set, to the time when the round was first
/// reported.
void JobTrace::EndRound() {
  if (round_) ended_.push_back(*std::exchange(round_, std::nullopt));
}

void JobTrace::EndGeneration(TimePoint now) {
  EndRound();
  End(generation_, now);
}

void JobTrace::GenerationBegan(int number, int size, const std::string& how, TimePoint now) {
  if (!attempt_) return;
  EndGeneration(now);
  generation_ = Begin("generation", attempt_id_, now);
  generation_->attributes = {{"warren.generation", std::int64_t{number}},
                             {"warren.workers", std::int64_t{size}},
                             {"warren.begin", how}};
  rounds_parent_ = generation_->id;
  round_begins_ = now;
}

void JobTrace::Evaluated(std::int64_t round, std::int64_t rounds, const Metrics& metrics, bool begins,
                         TimePoint now) {
  if (!attempt_) return;
  if (begins || round != round_number_) EndRound();
  if (!round_) {
    round_ = Begin(kRoundSpan, rounds_parent_, std::exchange(round_begins_, now));
    round_->end_ns = NanosecondsAt(now);
    round_number_ = round;
  }
  round_->attributes = RoundAttributes(round, rounds, metrics);
}

}  // namespace warren::submit
