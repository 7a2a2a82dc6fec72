// Splits a stream of bytes into lines. No byte is changed, added or lost.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace warren::submit {

/// The maximum length of a piece. Longer lines are passed on in several pieces, so that a stream without
/// newlines needs no more memory.
inline constexpr std::size_t kMaxLineBytes = std::size_t{64} << 10;

/// Whether a piece redraws a progress bar over the unfinished line before it.
inline bool RedrawsLine(std::string_view piece) {
  return piece.starts_with('\r') && piece != "\r\n";
}

class LineSplitter {
 public:
  /// Calls take(std::string_view) for every complete line, including its newline, and for pieces of
  /// kMaxLineBytes of longer lines. A carriage return begins a new piece unless a newline follows it; from
  /// then on until the end of the line, nothing but a carriage return is held back, since progress bars
  /// redraw their line without ending it. A view is valid only during the call.
  template <typename Take>
  void Append(std::string_view bytes, const Take& take) {
    while (!bytes.empty()) {
      const End end = FindEnd(bytes);
      const std::size_t room = kMaxLineBytes - partial_.size();
      const std::size_t taken = end.bytes < room ? end.bytes : room;
      const bool complete = taken == room || end.known;
      if (complete && taken == end.bytes) is_drawn_over_ = end.known && end.by_return;
      Pass(bytes.substr(0, taken), complete, take);
      bytes.remove_prefix(taken);
    }
    is_drawn_over_ = is_drawn_over_ || (partial_.size() > 1 && partial_.front() == '\r');
    if (is_drawn_over_ && !partial_.empty() && partial_ != "\r") Pass({}, true, take);
  }

  /// At the end of the stream, passes on the text after the last newline, if any.
  template <typename Take>
  void Finish(const Take& take) {
    if (!partial_.empty()) Pass({}, true, take);
    is_drawn_over_ = false;
  }

 private:
  struct End {
    std::size_t bytes;       ///< number of the given bytes that belong to the piece
    bool known = false;      ///< whether the piece ends here; otherwise, more of it may follow
    bool by_return = false;  ///< whether the next piece begins with a carriage return
  };

  /// Finds the end of the piece that begins with partial_ and continues with `bytes`, which must not be
  /// empty.
  End FindEnd(std::string_view bytes) const {
    std::size_t from = 0;
    if (partial_ == "\r") {
      if (bytes.front() == '\n') return {1, true};
    } else if (partial_.empty() && bytes.front() == '\r') {
      if (bytes.size() == 1) return {1};
      if (bytes[1] == '\n') return {2, true};
      from = 1;
    }
    const std::size_t at = bytes.find_first_of("\r\n", from);
    if (at == std::string_view::npos) return {bytes.size()};
    if (bytes[at] == '\n') return {at + 1, true};
    if (at + 1 < bytes.size() && bytes[at + 1] == '\n') return {at + 2, true};
    return {at, true, true};
  }

  template <typename Take>
  void Pass(std::string_view bytes, bool complete, const Take& take) {
    if (complete && partial_.empty()) return take(bytes);
    partial_ += bytes;
    if (!complete) return;
    take(std::string_view(partial_));
    partial_.clear();
  }

  std::string partial_;
  bool is_drawn_over_ = false;  ///< whether the unfinished line is a progress bar
};

}  // namespace warren::submit
