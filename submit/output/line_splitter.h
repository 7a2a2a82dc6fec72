// Cuts a stream of bytes into lines. Bytes in, pieces out: nothing is changed, added or lost.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace warren::submit {

/// A line longer than this is passed on in pieces, so that a stream without newlines needs no more memory.
inline constexpr std::size_t kMaxLineBytes = std::size_t{64} << 10;

class LineSplitter {
 public:
  /// Calls take(std::string_view) for every whole line, its newline included, and for pieces of kMaxLineBytes
  /// of longer ones. A view is valid during the call only.
  template <typename Take>
  void Append(std::string_view bytes, const Take& take) {
    while (!bytes.empty()) {
      const std::size_t newline = bytes.find('\n');
      const std::size_t room = kMaxLineBytes - partial_.size();
      const std::size_t rest_of_line = newline == std::string_view::npos ? bytes.size() : newline + 1;
      const std::size_t taken = rest_of_line < room ? rest_of_line : room;
      const bool complete = taken == room || newline + 1 == taken;
      Pass(bytes.substr(0, taken), complete, take);
      bytes.remove_prefix(taken);
    }
  }

  /// Passes on what came after the last newline, if anything: the stream has ended.
  template <typename Take>
  void Finish(const Take& take) {
    if (!partial_.empty()) Pass({}, true, take);
  }

 private:
  template <typename Take>
  void Pass(std::string_view bytes, bool complete, const Take& take) {
    if (complete && partial_.empty()) return take(bytes);
    partial_ += bytes;
    if (!complete) return;
    take(std::string_view(partial_));
    partial_.clear();
  }

  std::string partial_;
};

}  // namespace warren::submit
