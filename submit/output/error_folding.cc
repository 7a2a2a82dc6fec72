#include "submit/output/error_folding.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "submit/output/error_lines.h"
#include "submit/output/line_splitter.h"

namespace warren::submit {
namespace {

/// Words of the engine's error in ranks that wait for a rank that has failed: the reason is in that rank's
/// error, which may arrive later.
constexpr std::string_view kGaveUp = "gave up after an error";
/// Words of the engine's errors if another rank has closed its connections: the reason, if that rank has
/// printed one, has arrived before.
constexpr std::array<std::string_view, 4> kSaysLost{" lost rank ", " was lost, as rank ",
                                                    " was lost while the ranks connected",
                                                    "has ended before it was done"};
/// The maximum number of processes named in one line.
constexpr std::size_t kMaxNamed = 16;

/// The labels of the processes, of which at most kMaxNamed are named: "[1] [2] and 40 more".
std::string Named(const std::vector<std::size_t>& processes,
                  const std::function<std::string(std::size_t)>& label) {
  std::string names;
  const std::size_t named = std::min(processes.size(), kMaxNamed);
  for (std::size_t i = 0; i < named; ++i) {
    names += fmt::format("{}[{}]", i == 0 ? "" : " ", label(processes[i]));
  }
  return processes.size() == named ? names : fmt::format("{} and {} more", names, processes.size() - named);
}

}  // namespace

std::string Describe(const FoldedErrors& folded, std::size_t num_processes, std::string_view noun,
                     const std::function<std::string(std::size_t)>& label) {
  if (folded.same.empty() && folded.others.empty()) return {};
  std::string story;
  if (folded.same.size() + 1 == num_processes) {
    story = fmt::format("{} {} failed with the same error",
                        num_processes == 2 ? "both" : fmt::format("all {}", num_processes), noun);
  } else if (!folded.same.empty()) {
    story = Named(folded.same, label) + " failed with the same error as the first";
  }
  if (!folded.others.empty()) {
    story +=
        fmt::format("{}{} {}", story.empty() ? "" : ", ", Named(folded.others, label),
                    folded.first ? "failed as a consequence" : "reported errors while they were stopped");
  }
  return story + " (--show-all-errors shows their output)";
}

ErrorFolding::ErrorFolding(std::size_t num_processes, Show show)
    : show_(std::move(show)), processes_(num_processes) {}

void ErrorFolding::Append(std::size_t index, std::string_view piece, TimePoint now) {
  Process& process = processes_[index];
  process.ended = false;
  // A progress bar's line is unfinished, but text after it counts as a new line.
  const bool continues_line = std::exchange(process.in_line, !piece.ends_with('\n') && !RedrawsLine(piece));
  if (process.blocks.empty() && (continues_line || !BeginsError(piece))) return show_(index, piece);
  Hold(index, piece, continues_line, now);
  while (process.held_bytes > kMaxHeldBytes) ShowFirstBlock(index);
}

void ErrorFolding::Hold(std::size_t index, std::string_view piece, bool continues_line, TimePoint now) {
  Process& process = processes_[index];
  holding_.insert(index);
  const bool begins = !continues_line && BeginsError(piece);
  if (process.blocks.empty() || begins) {
    process.blocks.push_back({now, now + kPatienceWithSilent, false, {}});
  }
  Block& block = process.blocks.back();
  if (!block.went_on && !continues_line) {
    block.went_on = !ContinuesError(piece);
    block.shown_at = std::min(now + (block.went_on ? kPatienceWithTalkers : kPatienceWithSilent),
                              block.begin + kLongestHold);
  }
  block.pieces.emplace_back(piece);
  process.held_bytes += piece.size();
}

void ErrorFolding::Ended(std::size_t index, bool well) {
  processes_[index].ended = true;
  processes_[index].in_line = false;
  if (well) ShowHeld(index);
}

void ErrorFolding::StopBegins(TimePoint now) {
  if (!stop_) stop_ = now;
}

std::optional<ErrorFolding::TimePoint> ErrorFolding::NextDeadline() const {
  std::optional<TimePoint> next;
  if (stop_) return next;
  for (const std::size_t index : holding_) {
    const Process& process = processes_[index];
    if (process.ended) continue;
    next = std::min(next.value_or(TimePoint::max()), process.blocks.front().shown_at);
  }
  return next;
}

void ErrorFolding::Tick(TimePoint now) {
  if (stop_) return;
  for (const std::size_t index : std::set<std::size_t>(holding_)) {
    const Process& process = processes_[index];
    while (!process.ended && !process.blocks.empty() && process.blocks.front().shown_at <= now) {
      ShowFirstBlock(index);
    }
  }
}

void ErrorFolding::ShowFirstBlock(std::size_t index) {
  Process& process = processes_[index];
  const Block block = std::move(process.blocks.front());
  process.blocks.pop_front();
  if (process.blocks.empty()) holding_.erase(index);
  for (const std::string& piece : block.pieces) {
    process.held_bytes -= piece.size();
    show_(index, piece);
  }
}

bool ErrorFolding::ShowHeld(std::size_t index) {
  if (processes_[index].blocks.empty()) return false;
  while (!processes_[index].blocks.empty()) ShowFirstBlock(index);
  return true;
}

void ErrorFolding::ShowAllHeld() {
  for (std::size_t index = 0; index < processes_.size(); ++index) ShowHeld(index);
}

/// The process whose held error is the earliest; nullopt if none exists. Errors after the stop do not
/// count, since the stop caused them.
std::optional<std::size_t> ErrorFolding::FirstBeforeStop() const {
  std::optional<std::size_t> first;
  TimePoint earliest = stop_.value_or(TimePoint::max());
  for (std::size_t index = 0; index < processes_.size(); ++index) {
    const auto& blocks = processes_[index].blocks;
    if (blocks.empty() || blocks.front().begin >= earliest) continue;
    first = index;
    earliest = blocks.front().begin;
  }
  return first;
}

/// Shows the earliest error that gives a reason, if the error of process `first` only says that another rank
/// has given up or was lost. Which of the two processes ends first, and whose error arrives first, is a
/// matter of chance. A rank that was lost may have given no reason, e.g. if it was killed. Errors that the
/// stop caused give none.
void ErrorFolding::ShowReasonFor(std::size_t first) {
  const auto says = [](const Process& process, std::string_view words) {
    for (const Block& block : process.blocks) {
      for (const std::string& piece : block.pieces) {
        if (piece.find(words) != std::string::npos) return true;
      }
    }
    return false;
  };
  const auto says_lost = [&](const Process& process) {
    return std::any_of(kSaysLost.begin(), kSaysLost.end(),
                       [&](std::string_view words) { return says(process, words); });
  };
  const bool gave_up = says(processes_[first], kGaveUp);
  if (!gave_up && !says_lost(processes_[first])) return;
  const TimePoint end = gave_up ? TimePoint::max() : stop_.value_or(TimePoint::max());
  std::optional<std::size_t> reason;
  for (const std::size_t index : holding_) {
    const Process& process = processes_[index];
    if (process.blocks.empty() || process.blocks.front().begin >= end) continue;
    if (says(process, kGaveUp) || says_lost(process)) continue;
    if (!reason || process.blocks.front().begin < processes_[*reason].blocks.front().begin) reason = index;
  }
  if (reason) ShowHeld(*reason);
}

FoldedErrors ErrorFolding::Fold(std::optional<std::size_t> culprit) {
  const auto words_of = [](const Process& process) {
    std::string words;
    for (const Block& block : process.blocks) {
      for (const std::string& piece : block.pieces) words += WithoutNumbers(piece);
    }
    return words;
  };
  FoldedErrors folded;
  folded.first = culprit ? culprit : FirstBeforeStop();
  if (folded.first) ShowReasonFor(*folded.first);
  folded.has_words = folded.first && !processes_[*folded.first].blocks.empty();
  const std::string first_words = folded.has_words ? words_of(processes_[*folded.first]) : "";
  for (std::size_t index = 0; index < processes_.size(); ++index) {
    Process& process = processes_[index];
    if (index == folded.first || process.blocks.empty()) continue;
    (words_of(process) == first_words ? folded.same : folded.others).push_back(index);
    process.blocks.clear();
    process.held_bytes = 0;
    holding_.erase(index);
  }
  stop_.reset();
  return folded;
}

}  // namespace warren::submit
