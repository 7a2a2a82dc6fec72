// What the user sees: the lines of all processes, each with its [rank] in front, messages of dmlc-submit, and
// on a terminal one line of status below them.
//
// Nothing here blocks on a pipe, socket or terminal whose reader is slow, because the same thread serves the
// tracker and watches the processes: what cannot be written waits in memory, and full() tells the owner to
// stop reading the processes' output until `on_room` is called. They are then slowed down by their own full
// pipes, and no line is lost.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "submit/deadline_timer.h"
#include "submit/options.h"
#include "submit/output/line_format.h"
#include "submit/output/status_line.h"
#include "submit/process/stream.h"

namespace warren::submit {

/// "dmlc-submit: [=====     ] 2 of 4 workers connected"
std::string ProgressBar(int joined, int expected);

struct ConsoleSettings {
  ColorChoice color = ColorChoice::kAuto;
  LogFormat format = LogFormat::kText;
  bool quiet = false;  ///< no status line
};

class Console {
 public:
  /// Writes to descriptors 1 and 2, whose flags it leaves alone: they are shared with other programs.
  Console(boost::asio::io_context& io, const ConsoleSettings& settings);
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
  /// Text for standard output as it is, whatever the format: it was asked for. A newline is added when it
  /// ends without one.
  void Print(std::string_view text);
  /// What a worker printed by way of the tracker, for standard output.
  void TrackerPrint(std::string_view text);
  /// A message of dmlc-submit, for standard error, without its newline. May have several lines.
  void Message(Severity severity, std::string_view text);
  /// A JSON object ("{...}") for standard error, without the time, which is put in; nothing where the format
  /// is for people.
  void Object(std::string_view json_object_without_time);

  /// Shows one line below the output until it is hidden, on a terminal only, cut to its width. It is drawn
  /// some ten times a second at most, so that it may be called as often as there is something new.
  void ShowStatus(std::string_view text);
  void HideStatus();
  /// Called when the terminal has got another width, before the status line is drawn anew.
  std::function<void()> on_resize;
  /// Columns of the terminal; 80 where there is none.
  int width() const;
  /// A status line can be shown: standard error is a capable terminal and nobody asked for quiet or JSON.
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
  void Write(Sink& sink, std::uint64_t speaker, const LineFormat::Line& line);
  void MakeRoom();

  void DrawStatusWhenDue();
  void WaitForResize();

  const std::unique_ptr<LineFormat> format_;
  std::shared_ptr<Sink> out_;
  std::shared_ptr<Sink> err_;  ///< the same as out_ when both are one file, so that the order is kept
  bool color_out_ = false;
  bool color_err_ = false;
  bool interactive_ = false;
  bool was_full_ = false;
  StatusLine status_;
  DeadlineTimer status_timer_;
  boost::asio::signal_set resized_;
};

}  // namespace warren::submit
