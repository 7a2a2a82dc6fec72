// What the user sees: the lines of all processes, each with its [rank] in front, messages of dmlc-submit, and
// on a terminal a bar while workers connect.
//
// Nothing here blocks on a pipe, socket or terminal whose reader is slow, because the same thread serves the
// tracker and watches the processes: what cannot be written waits in memory, and full() tells the owner to
// stop reading the processes' output until `on_room` is called. They are then slowed down by their own full
// pipes, and no line is lost.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "submit/options.h"
#include "submit/process/stream.h"

namespace warren::submit {

/// Whose output a line is.
struct Speaker {
  std::uint64_t id = 0;  ///< not 0; another for each stream of each process
  std::string label;     ///< what stands in the brackets: "3", "server 0"
  int color = 0;         ///< any number; the same one is always shown in the same colour
};

/// The label in brackets and a space, in colour or plain.
std::string Prefix(const Speaker& speaker, bool colored);
/// "dmlc-submit: [=====     ] 2 of 4 workers connected"
std::string ProgressBar(int joined, int expected);

class Console {
 public:
  /// Writes to descriptors 1 and 2, whose flags it leaves alone: they are shared with other programs.
  Console(boost::asio::io_context& io, ColorChoice color);
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  /// Called when there is room again after full() was true.
  std::function<void()> on_room;
  /// Called once when the reader of standard output has gone away.
  std::function<void()> on_reader_gone;

  /// A line with its newline, or a piece of a long or unfinished one. When somebody else writes before the
  /// line is finished, a newline is put in and the rest gets a prefix of its own; bytes are never changed.
  void WriteLine(Stream stream, const Speaker& speaker, std::string_view piece);
  /// Text for standard output without a prefix; a newline is added when it ends without one.
  void Print(std::string_view text);
  /// A message of dmlc-submit, whole lines, for standard error.
  void Message(std::string_view lines);
  /// Draws the bar, on a terminal only; it stays below the output until it is removed.
  void ShowProgress(int joined, int expected);
  void RemoveProgress();
  /// True when standard error is a terminal that can show a bar.
  bool interactive() const;

  /// So much waits to be written that no more should be read.
  bool full() const;
  /// Everything is written (or nobody reads it).
  bool idle() const;
  /// Writes what is left, blocking: until it is written, or at most for `limit`.
  void Flush(std::optional<std::chrono::milliseconds> limit);

 private:
  class Sink;
  Sink& SinkOf(Stream stream) const;
  void Write(Sink& sink, std::uint64_t speaker, std::string_view prefix, std::string_view text);
  void MakeRoom();

  std::shared_ptr<Sink> out_;
  std::shared_ptr<Sink> err_;  ///< the same as out_ when both are one file, so that the order is kept
  bool color_out_ = false;
  bool color_err_ = false;
  bool interactive_ = false;
  bool was_full_ = false;
  std::string bar_;  ///< empty: none is shown
};

}  // namespace warren::submit
