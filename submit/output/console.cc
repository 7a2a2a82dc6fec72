#include "submit/output/console.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "posix/descriptor.h"
#include "submit/output/when_writable.h"

namespace warren::submit {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;
using WallClock = std::chrono::system_clock;

/// Limits on the bytes waiting for one descriptor. Above the first limit, the processes' output is no longer
/// read; at or below the second, it is read again.
constexpr std::size_t kFullBytes = std::size_t{256} << 10;
constexpr std::size_t kRoomBytes = std::size_t{64} << 10;
/// The number of bytes that a ready pipe is sure to accept without blocking.
constexpr std::size_t kWriteBytes = PIPE_BUF;
/// The pause before the next write to a terminal that reports room, but has too little for one character.
constexpr std::chrono::milliseconds kRefusedPause{10};
constexpr std::size_t kBarWidth = 30;
/// The interval at which Flush checks the clock while a descriptor is not ready.
constexpr int kFlushPollMs = 50;

constexpr int kUsualWidth = 80;

bool IsCapableTerminal(int fd) {
  const char* term = std::getenv("TERM");
  return isatty(fd) == 1 && term != nullptr && std::string_view(term) != "dumb" && *term != '\0';
}

bool WantsColor(ColorChoice choice, int fd) {
  if (choice != ColorChoice::kAuto) return choice == ColorChoice::kAlways;
  const char* no_color = std::getenv("NO_COLOR");
  return IsCapableTerminal(fd) && (no_color == nullptr || *no_color == '\0');
}

bool SameFile(int a, int b) {
  struct stat first {};
  struct stat second {};
  return fstat(a, &first) == 0 && fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino && first.st_rdev == second.st_rdev;
}

/// Opens the terminal of `fd` again for writes that do not block; empty if `fd` is not a terminal or cannot
/// be opened again. Poll reports that a terminal is writable even if it accepts only a few bytes, and a
/// longer write would then block.
posix::Descriptor OpenTerminalAgain(int fd) {
  if (isatty(fd) != 1) return {};
  return posix::Descriptor(
      open(fmt::format("/proc/self/fd/{}", fd).c_str(), O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
}

}  // namespace

/// A descriptor and the bytes waiting to be written to it. Never blocks: writes only as much as a ready
/// descriptor accepts.
class Console::Sink : public std::enable_shared_from_this<Sink> {
 public:
  Sink(asio::io_context& io, int fd)
      : io_(io),
        terminal_(OpenTerminalAgain(fd)),
        fd_(terminal_ ? terminal_.get() : fd),
        ready_(io, fd_),
        pause_(io) {}

  std::function<void()> on_progress;
  std::function<void(int error)> on_closed;
  std::uint64_t unfinished_by = 0;  ///< the speaker whose line is unfinished; 0 if none

  void Write(std::string_view bytes) {
    if (closed_ || bytes.empty()) return;
    pending_ += bytes;
    if (pump_posted_) return;
    pump_posted_ = true;  // one Pump serves all lines written before it runs
    asio::post(io_, [self = shared_from_this()] {
      self->pump_posted_ = false;
      self->Pump();
    });
  }

  /// Writes as much as the descriptor accepts now, and the rest when it is ready.
  void Pump() {
    while (!pending_.empty() && !closed_) {
      if (!WriteSome()) break;
    }
    if (written_ > 0) pending_.erase(0, std::exchange(written_, 0));
    if (!pending_.empty() && !closed_) WaitUntilReady();
    if (on_progress) on_progress();
  }

  std::size_t backlog() const { return pending_.size(); }
  int fd() const { return fd_; }
  /// Waits until the descriptor is ready, at most for the given time.
  void WaitHere(int limit_ms) const {
    pollfd ready{fd_, POLLOUT, 0};
    const bool is_ready = poll(&ready, 1, limit_ms) > 0;
    if (is_ready && is_refused_) poll(nullptr, 0, static_cast<int>(kRefusedPause.count()));
  }

 private:
  /// Returns false if nothing more can be written now.
  bool WriteSome() {
    const std::string_view rest = std::string_view(pending_).substr(written_);
    is_refused_ = false;
    if (rest.empty()) return false;
    pollfd ready{fd_, POLLOUT, 0};
    if (ready_.may_wait() && poll(&ready, 1, 0) < 1) return false;
    const std::size_t size = ready_.may_wait() ? std::min(rest.size(), kWriteBytes) : rest.size();
    const ssize_t count = write(fd_, rest.data(), size);
    if (count >= 0) {
      written_ += static_cast<std::size_t>(count);
      return true;
    }
    if (errno == EINTR) return true;
    if (errno != EAGAIN) Close(errno);
    is_refused_ = !closed_;
    return false;
  }

  void Close(int error) {
    closed_ = true;
    pending_.clear();
    written_ = 0;
    if (on_closed) on_closed(error);
  }

  void WaitUntilReady() {
    if (waiting_ || (!ready_.may_wait() && !is_refused_)) return;
    waiting_ = true;
    auto pump = [self = shared_from_this()](const boost::system::error_code& error) {
      self->waiting_ = false;
      if (!error) self->Pump();
    };
    if (!is_refused_) return ready_.Wait(std::move(pump));
    pause_.expires_after(kRefusedPause);
    pause_.async_wait(std::move(pump));
  }

  asio::io_context& io_;
  posix::Descriptor terminal_;
  int fd_;
  WhenWritable ready_;
  asio::steady_timer pause_;
  std::string pending_;
  std::size_t written_ = 0;  ///< written bytes at the front of pending_
  bool pump_posted_ = false;
  bool waiting_ = false;
  bool is_refused_ = false;  ///< the last write failed although poll had reported that it would not
  bool closed_ = false;
};

std::string ProgressBar(int joined, int expected) {
  const auto filled = expected > 0
                          ? kBarWidth * static_cast<std::size_t>(joined) / static_cast<std::size_t>(expected)
                          : std::size_t{0};
  return fmt::format("dmlc-submit: [{:=>{}}{:{}}] {} of {} workers connected", "", filled, "",
                     kBarWidth - std::min(filled, kBarWidth), joined, expected);
}

Console::Console(asio::io_context& io, const ConsoleSettings& settings)
    : format_(MakeLineFormat(settings.format)),
      out_(std::make_shared<Sink>(io, STDOUT_FILENO)),
      err_(SameFile(STDOUT_FILENO, STDERR_FILENO) ? out_ : std::make_shared<Sink>(io, STDERR_FILENO)),
      color_out_(WantsColor(settings.color, STDOUT_FILENO)),
      color_err_(WantsColor(settings.color, STDERR_FILENO)),
      interactive_(!settings.quiet && format_->is_for_people() && IsCapableTerminal(STDERR_FILENO)),
      status_timer_(io),
      resized_(io) {
  out_->on_progress = err_->on_progress = [this] { MakeRoom(); };
  err_->on_closed = [](int) {};  // no output is left on which to report the error
  out_->on_closed = [this](int error) {
    if (error == EPIPE) {
      if (on_reader_gone) on_reader_gone();
    } else {
      Message(Severity::kWarning,
              fmt::format("cannot write to standard output any more: {}", std::strerror(error)));
    }
  };
  if (!interactive_) return;
  resized_.add(SIGWINCH);
  WaitForResize();
}

Console::~Console() {
  for (Sink* sink : {out_.get(), err_.get()}) {
    sink->on_progress = nullptr;
    sink->on_closed = nullptr;
  }
}

Console::Sink& Console::SinkOf(Stream stream) const {
  return stream == Stream::kOut ? *out_ : *err_;
}

void Console::Write(Sink& sink, std::uint64_t speaker, const LineFormat::Line& line) {
  if (line.text.empty() && !line.redraws) return;
  const bool above_status = &sink == err_.get();
  if (above_status) sink.Write(status_.BeforeOutput());
  const bool goes_on = sink.unfinished_by == speaker && speaker != 0;
  if (!goes_on && sink.unfinished_by != 0) sink.Write("\n");
  if (!goes_on || line.redraws) sink.Write(line.prefix);
  sink.Write(line.text);
  sink.unfinished_by = line.text.ends_with('\n') ? 0 : speaker;
  if (above_status) {
    status_.AfterOutput(sink.unfinished_by == 0 ? std::chrono::milliseconds(0)
                        : line.redraws          ? kRedrawnPatience
                                                : kUnfinishedPatience,
                        Clock::now());
    DrawStatusWhenDue();
  }
}

void Console::WriteLine(Stream stream, const Speaker& speaker, std::string_view piece) {
  const bool colored = stream == Stream::kOut ? color_out_ : color_err_;
  Write(SinkOf(stream), speaker.id, format_->OfProcess(WallClock::now(), stream, speaker, piece, colored));
}

void Console::Print(std::string_view text) {
  if (text.empty()) return;
  std::string lines(text);
  if (lines.back() != '\n') lines += '\n';
  Write(*out_, 0, {.prefix = {}, .text = std::move(lines)});
}

void Console::TrackerPrint(std::string_view text) {
  Write(*out_, 0, {.prefix = {}, .text = format_->TrackerPrint(WallClock::now(), text)});
}

void Console::Message(Severity severity, std::string_view text) {
  Write(*err_, 0, {.prefix = {}, .text = format_->Message(WallClock::now(), severity, text)});
}

void Console::Object(std::string_view json_object_without_time) {
  Write(*err_, 0, {.prefix = {}, .text = format_->Object(WallClock::now(), json_object_without_time)});
}

// --- the status line ---------------------------------------------------------------------------------------

void Console::ShowStatus(std::string_view text) {
  if (!interactive_) return;
  if (text.empty()) return HideStatus();
  status_.Set(text, Clock::now());
  DrawStatusWhenDue();
}

void Console::HideStatus() {
  err_->Write(status_.Hide());
  DrawStatusWhenDue();
}

void Console::DrawStatusWhenDue() {
  const StatusLine::TimePoint now = Clock::now();
  if (status_.NextDraw() && *status_.NextDraw() <= now) {
    if (status_.is_set() && std::exchange(err_->unfinished_by, 0) != 0) err_->Write("\n");
    err_->Write(status_.Draw(width(), now));
  }
  status_timer_.Set(status_.NextDraw(), [this] { DrawStatusWhenDue(); });
}

void Console::WaitForResize() {
  resized_.async_wait([this](const boost::system::error_code& error, int /*signal*/) {
    if (error) return;
    WaitForResize();
    if (on_resize) on_resize();
    status_.Refresh(Clock::now());
    DrawStatusWhenDue();
  });
}

int Console::width() const {
  winsize size{};
  const bool known = ioctl(err_->fd(), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUsualWidth;
}

bool Console::full() {
  // Only if was_full_ is set does MakeRoom call on_room, for which the caller now waits.
  was_full_ = was_full_ || out_->backlog() > kFullBytes || err_->backlog() > kFullBytes;
  return was_full_;
}

bool Console::idle() const {
  return out_->backlog() == 0 && err_->backlog() == 0;
}

void Console::MakeRoom() {
  if (!was_full_ || out_->backlog() > kRoomBytes || err_->backlog() > kRoomBytes) return;
  was_full_ = false;
  if (on_room) on_room();
}

void Console::Flush(std::optional<std::chrono::milliseconds> limit) {
  HideStatus();
  const auto start = Clock::now();
  for (;;) {
    out_->Pump();
    if (err_ != out_) err_->Pump();
    if (idle() || (limit && Clock::now() - start >= *limit)) return;
    (out_->backlog() > 0 ? out_ : err_)->WaitHere(kFlushPollMs);
  }
}

}  // namespace warren::submit
