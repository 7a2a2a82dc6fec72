#include "submit/cluster/kubernetes/log_reader.h"

#include <algorithm>
#include <cctype>

namespace warren::submit {
namespace {

/// More than the length of the longest timestamp, such as "2026-01-02T15:04:05.123456789+01:00".
constexpr std::size_t kMaxTimeBytes = 40;
/// The beginning of the line that the kubelet prints in place of a log that is gone.
constexpr std::string_view kNoLog = "unable to retrieve container logs for containerd://";

bool IsTime(std::string_view text) {
  return text.size() >= 20 && std::isdigit(static_cast<unsigned char>(text[0])) != 0 && text[4] == '-' &&
         text[10] == 'T';
}

/// Converts a timestamp to a string with a fraction of nine digits. Within one time zone, such strings sort
/// by time.
std::string Key(std::string_view time) {
  std::string key(time.substr(0, 19));
  std::string digits;
  if (time[19] == '.') {
    const std::size_t end = std::min(time.find_first_not_of("0123456789", 20), time.size());
    digits = time.substr(20, end - 20);
  }
  digits.resize(9, '0');
  return key + digits;
}

}  // namespace

void LogReader::Append(std::string_view bytes, const std::function<void(std::string_view)>& on_text) {
  while (!bytes.empty()) {
    if (!in_line_) {
      const std::size_t stop = bytes.find_first_of(" \n");
      begin_ += bytes.substr(0, stop);
      const bool whole = stop != std::string_view::npos;
      bytes.remove_prefix(whole ? stop : bytes.size());
      if (!whole && begin_.size() <= kMaxTimeBytes) return;
      in_line_ = true;
      skip_ = 0;
      skip_line_ = false;
      if (IsTime(begin_)) {
        if (whole && bytes.front() == ' ') bytes.remove_prefix(1);
        BeginLine();
      } else {
        // A line without a timestamp is not from the log. If the container is gone, the kubelet prints
        // kNoLog, which is recognized by its first word and skipped.
        skip_line_ = begin_ == kNoLog.substr(0, kNoLog.find(' '));
        if (!skip_line_) on_text(begin_);
      }
      begin_.clear();
      continue;
    }
    const std::size_t newline = bytes.find('\n');
    std::string_view text = bytes.substr(0, newline == std::string_view::npos ? bytes.size() : newline + 1);
    bytes.remove_prefix(text.size());
    if (newline != std::string_view::npos) in_line_ = false;
    if (skip_line_) continue;
    const std::size_t known = std::min(skip_, text.size());
    skip_ -= known;
    text.remove_prefix(known);
    line_bytes_ += text.size();
    if (!text.empty()) on_text(text);
  }
}

/// Handles the beginning of a line, whose timestamp is in begin_. Lines need not be in the order of their
/// timestamps, since two streams share one log. The known part of the log therefore ends with the line that
/// was read last, not with the line that has the latest timestamp.
void LogReader::BeginLine() {
  const std::string key = Key(begin_);
  if (catching_up_) {
    const bool is_beyond = key.compare(0, 19, key_, 0, 19) > 0;  // if so, the log no longer has the last line
    const bool is_last = key == key_ && ++again_ == lines_of_time_;
    catching_up_ = !is_beyond && !is_last;
    if (is_last) skip_ = line_bytes_;
    skip_line_ = catching_up_;
    if (!is_beyond) return;
  }
  lines_of_time_ = key == key_ ? lines_of_time_ + 1 : 1;
  key_ = key;
  time_ = begin_;
  line_bytes_ = 0;
}

void LogReader::Reconnect() {
  begin_.clear();
  in_line_ = false;
  again_ = 0;
  catching_up_ = !time_.empty();
}

std::string LogReader::since() const {
  if (time_.empty()) return {};
  const std::size_t zone = time_.find_first_not_of("0123456789.", 19);
  return time_.substr(0, 19) + (zone == std::string::npos ? "Z" : time_.substr(zone));
}

}  // namespace warren::submit
