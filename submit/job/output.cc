#include "submit/job/output.h"

#include <spdlog/spdlog.h>

#include <filesystem>
#include <stdexcept>
#include <utility>

#include "submit/output/log.h"
#include "submit/output/log_folder.h"

namespace warren::submit {

using Clock = std::chrono::steady_clock;

JobOutput::JobOutput(boost::asio::io_context& io, Console& console, const std::vector<PlannedProcess>& plan,
                     std::string log_dir, bool show_all, SpeakerOf speaker_of, Reader reader)
    : console_(console),
      log_dir_(std::move(log_dir)),
      show_all_(show_all),
      speaker_of_(std::move(speaker_of)),
      reader_(std::move(reader)),
      folding_(plan.size(),
               [this](std::size_t index, std::string_view piece) {
                 console_.WriteLine(Stream::kErr, speaker_of_(index, Stream::kErr), piece);
               }),
      timer_(io) {
  processes_.reserve(plan.size());
  for (const PlannedProcess& process : plan) {
    processes_.emplace_back(process.log_file);
    names_.push_back(ProcessName(process.role, process.task_id));
    has_servers_ = has_servers_ || process.role != tracker::Role::kWorker;
  }
}

void JobOutput::Begin(std::size_t index, int attempt) {
  folding_.ShowHeld(index);
  processes_[index].Begin(attempt);
}

void JobOutput::Append(std::size_t index, Stream stream, std::string_view bytes) {
  processes_[index].Append(stream, bytes, ShownFor(index));
  WaitForDeadline();
}

void JobOutput::Assigned(const std::string& task_id, int rank) {
  if (log_dir_.empty() || !can_link_) return;
  can_link_ = LinkRank(log_dir_, rank, task_id);
  if (can_link_) return;
  spdlog::warn(
      "'{}' cannot have links: the numbers of worker-N.log are task IDs (DMLC_TASK_ID), which may differ from ranks",
      log_dir_);
}

void JobOutput::TrackerPrint(std::string_view text) {
  console_.TrackerPrint(text);
  LogTrackerPrint(text);
  if (log_dir_.empty()) return;
  try {
    if (!tracker_log_) tracker_log_.emplace((std::filesystem::path(log_dir_) / kTrackerLog).string());
    tracker_log_->Write(text);
    if (!text.ends_with('\n')) tracker_log_->Write("\n");
  } catch (const std::runtime_error& error) {
    spdlog::warn("{}", error.what());
  }
}

void JobOutput::Finish(std::size_t index, bool well) {
  processes_[index].Finish(ShownFor(index));
  folding_.Ended(index, well);
  WaitForDeadline();
}

ProcessOutput::Show JobOutput::ShownFor(std::size_t index) {
  return [this, index](Stream stream, std::string_view piece) {
    reader_(index, stream, piece);
    if (stream == Stream::kErr && !show_all_) return folding_.Append(index, piece, Clock::now());
    console_.WriteLine(stream, speaker_of_(index, stream), piece);
  };
}

void JobOutput::StopBegins() {
  folding_.StopBegins(Clock::now());
  WaitForDeadline();
}

void JobOutput::ShowErrorOf(std::size_t index) {
  folding_.ShowHeld(index);
}

void JobOutput::ShowErrors(std::optional<std::size_t> culprit, bool repeat_last_output) {
  const FoldedErrors folded = folding_.Fold(culprit);
  const std::string story = Describe(folded, processes_.size(), has_servers_ ? "processes" : "workers",
                                     [this](std::size_t index) { return Label(index); });
  if (!story.empty()) spdlog::info("{}", story);
  if (folded.has_words) {
    folding_.ShowHeld(*folded.first);
  } else if (culprit && repeat_last_output) {
    ShowLastOutputOf(*culprit);
  }
}

void JobOutput::ShowLastOutputOf(std::size_t index) const {
  const auto& tail = processes_[index].tail();
  if (tail.empty()) return;
  spdlog::info("the last output of {}:", names_[index]);
  for (const std::string& line : tail) spdlog::info("  | {}", line);
}

void JobOutput::WaitForDeadline() {
  timer_.Set(folding_.NextDeadline(), [this] {
    folding_.Tick(Clock::now());
    WaitForDeadline();
  });
}

}  // namespace warren::submit
