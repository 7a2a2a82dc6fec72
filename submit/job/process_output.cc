#include "submit/job/process_output.h"

#include <fmt/format.h>

#include <algorithm>

namespace warren::submit {
namespace {

/// Limits on ProcessOutput::tail().
constexpr std::size_t kTailLines = 12;
constexpr std::size_t kTailLineBytes = 400;

}  // namespace

ProcessOutput::ProcessOutput(const std::string& log_file) {
  if (!log_file.empty()) log_.emplace(log_file);
}

void ProcessOutput::Begin(int attempt) {
  tail_.clear();
  if (attempt > 0 && log_) log_->Write(fmt::format("--- attempt {} ---\n", attempt + 1));
}

void ProcessOutput::Append(Stream stream, std::string_view bytes, const Show& show) {
  if (log_) log_->Write(bytes);
  LineSplitter& splitter = stream == Stream::kOut ? out_ : err_;
  splitter.Append(bytes, [&](std::string_view piece) {
    AddToTail(piece);
    show(stream, piece);
  });
}

void ProcessOutput::Finish(const Show& show) {
  const auto last = [&](Stream stream) {
    return [&, stream](std::string_view piece) {
      AddToTail(piece);
      show(stream, piece);
    };
  };
  out_.Finish(last(Stream::kOut));
  err_.Finish(last(Stream::kErr));
  tail_line_open_ = false;
}

void ProcessOutput::AddToTail(std::string_view piece) {
  const bool ends = piece.back() == '\n';
  const bool redraws = RedrawsLine(piece);  // before the newline is removed: "\r\n" redraws nothing
  if (ends) piece.remove_suffix(1);
  if (!tail_line_open_) tail_.emplace_back();
  std::string& line = tail_.back();
  if (redraws) {
    line.clear();  // keep only the latest state of a progress bar
    piece.remove_prefix(1);
  }
  line += piece.substr(0, kTailLineBytes - std::min(line.size(), kTailLineBytes));
  tail_line_open_ = !ends;
  if (tail_.size() > kTailLines) tail_.pop_front();
}

}  // namespace warren::submit
