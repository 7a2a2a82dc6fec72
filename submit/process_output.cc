#include "submit/process_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "posix/private_file.h"

namespace warren::submit {
namespace {

/// How much of a process's output is kept.
constexpr std::size_t kTailLines = 12;
constexpr std::size_t kTailLineBytes = 400;

}  // namespace

ProcessOutput::ProcessOutput(std::string log_file) : log_file_(std::move(log_file)) {
  if (log_file_.empty()) return;
  log_ = posix::OpenPrivate(log_file_.c_str(), O_APPEND | O_TRUNC);
  if (!log_)
    throw std::runtime_error(fmt::format("cannot write the log '{}': {}", log_file_, std::strerror(errno)));
}

void ProcessOutput::Begin(int attempt) {
  tail_.clear();
  if (attempt > 0) WriteLog(fmt::format("--- attempt {} ---\n", attempt + 1));
}

void ProcessOutput::Append(Stream stream, std::string_view bytes, const Show& show) {
  WriteLog(bytes);
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

void ProcessOutput::WriteLog(std::string_view bytes) {
  while (!bytes.empty() && log_) {
    const ssize_t count = write(log_.get(), bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      spdlog::warn("cannot write the log '{}' any more: {}", log_file_, std::strerror(errno));
      log_.reset();
    }
  }
}

void ProcessOutput::AddToTail(std::string_view piece) {
  const bool ends = piece.back() == '\n';
  if (ends) piece.remove_suffix(1);
  if (!tail_line_open_) tail_.emplace_back();
  std::string& line = tail_.back();
  if (RedrawsLine(piece)) {
    line.clear();  // the last state of a progress bar is enough
    piece.remove_prefix(1);
  }
  line += piece.substr(0, kTailLineBytes - std::min(line.size(), kTailLineBytes));
  tail_line_open_ = !ends;
  if (tail_.size() > kTailLines) tail_.pop_front();
}

}  // namespace warren::submit
