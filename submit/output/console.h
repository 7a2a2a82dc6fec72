// The output that the user sees: the lines of all processes, each prefixed with its [rank], messages of
// dmlc-submit and, on a terminal, a status line below them.
//
// Only Flush blocks if a pipe, socket or terminal is slow, because the same thread serves the tracker and
// watches the processes. Output that cannot be written waits in memory. While full() is true, the owner must
// stop reading the processes' output, until `on_room` is called. Their pipes then fill and slow the processes
// down, and no line is lost.
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

#include "submit/output/deadline_timer.h"
#include "submit/output/line_format.h"
#include "submit/output/status_line.h"
#include "submit/process/stream.h"

namespace warren::submit {

/// The progress bar for a status line: "dmlc-submit: [=====     ] 2 of 4 workers connected".
std::string ProgressBar(int joined, int expected);

struct ConsoleSettings {
  ColorChoice color = ColorChoice::kAuto;
  LogFormat format = LogFormat::kText;
  bool quiet = false;  ///< no status line
};

class Console {
 public:
  /// Writes to descriptors 1 and 2 without changing their flags, since they are shared with other programs.
  Console(boost::asio::io_context& io, const ConsoleSettings& settings);
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  /// Called when there is space again after full() was true.
  std::function<void()> on_room;
  /// Called once, when the reader of standard output has closed it.
  std::function<void()> on_reader_gone;

  /// Writes a line with its newline, or a piece of a long or unfinished line (line_splitter.h). If another
  /// speaker writes before the line is finished, a newline is inserted, and the rest of the line gets another
  /// prefix. As text, the bytes of the line are never changed.
  void WriteLine(Stream stream, const Speaker& speaker, std::string_view piece);
  /// Writes text that the user has requested to standard output, unchanged in any format, with a newline at
  /// the end if it lacks one.
  void Print(std::string_view text);
  /// Writes text that a worker printed through the tracker to standard output.
  void TrackerPrint(std::string_view text);
  /// Writes a message of dmlc-submit, without its newline, to standard error. May have several lines.
  void Message(Severity severity, std::string_view text);
  /// Writes a JSON object ("{...}") to standard error and adds the time to it; does nothing unless the format
  /// is JSON.
  void Object(std::string_view json_object_without_time);

  /// Shows a line below the output until HideStatus is called; does nothing unless interactive(). The line is
  /// truncated to the terminal's width and drawn at most about ten times a second, so this may be called at
  /// every change.
  void ShowStatus(std::string_view text);
  void HideStatus();
  /// Called when the terminal's width has changed, before the status line is redrawn.
  std::function<void()> on_resize;
  /// Columns of the terminal; 80 if unknown.
  int width() const;
  /// Whether a status line can be shown: standard error is a capable terminal, and neither --quiet nor JSON
  /// is set.
  bool interactive() const { return interactive_; }

  /// Whether so much output is waiting that no more should be read.
  bool full();
  /// Hides the status line and writes the pending output. Blocks until it is written, but for `limit` at
  /// most, if given.
  void Flush(std::optional<std::chrono::milliseconds> limit);

 private:
  class Sink;
  Sink& SinkOf(Stream stream) const;
  void Write(Sink& sink, std::uint64_t speaker, const LineFormat::Line& line);
  void MakeRoom();
  /// Whether no output is waiting: all is written, or its reader is gone.
  bool idle() const;

  void DrawStatusWhenDue();
  void WaitForResize();

  const std::unique_ptr<LineFormat> format_;
  std::shared_ptr<Sink> out_;
  std::shared_ptr<Sink> err_;  ///< same as out_ if both are one file, so that the order is kept
  bool color_out_ = false;
  bool color_err_ = false;
  bool interactive_ = false;
  bool was_full_ = false;
  StatusLine status_;
  DeadlineTimer status_timer_;
  boost::asio::signal_set resized_;
};

}  // namespace warren::submit
