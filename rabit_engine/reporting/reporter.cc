#include "rabit_engine/reporting/reporter.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <system_error>
#include <thread>
#include <utility>

#include "posix/host_name.h"
#include "posix/shortage.h"
#include "posix/thread.h"
#include "rabit_engine/base/error.h"
#include "rabit_engine/base/say.h"
#include "rabit_engine/base/tls_context.h"
#include "rabit_engine/bootstrap/tracker_connection.h"

namespace warren::reporting {
namespace {

using std::chrono::milliseconds;

/// The maximum number of regular reports per interval that the tracker receives from all workers together.
constexpr int kReportsPerInterval = 256;
constexpr milliseconds kFirstBackoff{1000};
constexpr milliseconds kMaxBackoff{60'000};
constexpr std::chrono::seconds kPatience{10};
/// The number of times the tracker is asked for its time. Only the fastest answer is used: the error is at
/// most half the round-trip time.
constexpr int kClockQuestions = 8;
constexpr std::chrono::seconds kClockPatience{2};

/// The reporter of this process. Never destroyed, because its thread runs until the process ends.
std::atomic<Reporter*> current = nullptr;

/// Returns the settings for reports, or nullopt if reports are disabled, there is no tracker, this process is
/// not a worker, or a setting is invalid.
std::optional<Settings> WantedSettings() {
  if (std::getenv(kReportVariable) == nullptr) return std::nullopt;
  try {
    Settings settings = ReadSettings({});
    if (settings.report_every.count() == 0 || settings.tracker_host.empty() || settings.role != "worker")
      return std::nullopt;
    // One attempt per report.
    settings.connect_retry = 1;
    settings.connect_timeout = std::min(settings.connect_timeout, kPatience);
    return settings;
  } catch (const EngineError&) {
    return std::nullopt;  // joining the job reports this error
  }
}

}  // namespace

milliseconds Interval(milliseconds every, int world_size) {
  return every * std::max(world_size, kReportsPerInterval) / kReportsPerInterval;
}

Reporter* Reporter::OfThisProcess() {
  Reporter* reporter = current.load(std::memory_order_acquire);
  if (reporter == nullptr) {
    auto settings = WantedSettings();
    if (!settings) return nullptr;
    auto* const made = new Reporter(*std::move(settings));
    if (current.compare_exchange_strong(reporter, made, std::memory_order_acq_rel)) return made;
    delete made;
  }
  return reporter->IsOfThisProcess() ? reporter : nullptr;
}

Reporter::Reporter(Settings settings)
    : settings_(std::move(settings)), host_(posix::HostName()), world_size_(settings_.num_workers) {}

Reporter::~Reporter() = default;

bool Reporter::Attach(const void* owner, int rank, int world_size) {
  const Lock lock(mutex_);
  if (owner_ != nullptr) return false;
  owner_ = owner;
  rank_ = rank;
  world_size_ = world_size;
  statistics_.BeginWorld();
  Want(lock);
  return true;
}

void Reporter::SetRank(int rank, int world_size) {
  const Lock lock(mutex_);
  if (owner_ != nullptr) return;
  rank_ = rank;
  world_size_ = world_size;
}

void Reporter::Detach(const void* owner) {
  if (!IsOfThisProcess()) return;
  const Lock lock(mutex_);
  if (owner_ != owner) return;
  owner_ = nullptr;
  is_last_ = true;
  Want(lock);
}

void Reporter::Tell(wire::ReportedProgress progress) {
  const Lock lock(mutex_);
  progress_ = std::move(progress);
  Want(lock);
}

void Reporter::Tell(wire::ReportedReading reading) {
  const Lock lock(mutex_);
  const bool is_another = !reading_ || reading_->what != reading.what;
  reading_ = std::move(reading);
  if (is_another) Want(lock);  // new numbers for the same data set can wait
}

void Reporter::Trace(wire::TracedEvent event) {
  if (!IsOfThisProcess()) return;
  const Lock lock(mutex_);
  if (trace_.size() >= kMostUnsentEvents) {
    ++dropped_;
    return;
  }
  trace_.push_back(std::move(event));
  if (!has_thread_) Want(lock);  // no communicator is attached, as over MPI
  if (trace_.size() % wire::kMaxTracedEvents == 0) due_.notify_one();
}

void Reporter::Want(const Lock& /*lock*/) {
  ++wanted_;
  if (!has_thread_) StartThread();
  due_.notify_one();
}

void Reporter::AwaitSent() {
  if (!IsOfThisProcess()) return;
  Lock lock(mutex_);
  is_last_ = true;
  if (!trace_.empty()) ++wanted_;
  due_.notify_one();
  const std::uint64_t wanted = wanted_;
  const auto is_done = [&] { return sent_ >= wanted || backoff_.count() > 0 || !has_thread_; };
  if (changed_.wait_for(lock, kLastReportPatience, is_done)) return;
  // Connecting can take long, so this waits only if a connection exists.
  if (!trace_.empty() && line_) changed_.wait_for(lock, kLastEventsPatience, is_done);
}

/// Starts the thread. If this fails, there are no reports until a later attempt succeeds.
void Reporter::StartThread() {
  if (!std::exchange(ends_with_process_, true)) {
    try {
      // OpenSSL cleans up in an atexit handler. Initialize it first: handlers registered later run earlier.
      static_cast<void>(TlsFor(settings_, wire::kTlsToTracker));
    } catch (const EngineError&) {
      // Connecting reports this error.
    }
    std::atexit([] { current.load()->End(); });
  }
  const posix::SignalsBlocked blocked;  // also in the new thread: signals are for the program's threads
  try {
    std::thread([this] { Serve(); }).detach();
    has_thread_ = true;
  } catch (const std::system_error& error) {
    if (!std::exchange(has_said_so_, true)) {
      Say("rabit: no thread can be started for reports to the tracker, so it will not know what this process does. {}: {}",
          error.what(), posix::ShortageAdvice(error.code().value()));
    }
  }
}

/// Returns the time when the next report is due, unless new events or requests make it due earlier.
Reporter::Clock::time_point Reporter::Due() const {
  if (last_ == Clock::time_point()) return last_;
  if (backoff_.count() > 0) return last_ + backoff_;
  if (trace_.size() >= wire::kMaxTracedEvents) return last_;
  if (wanted_ == sent_) return last_ + Interval(settings_.report_every, world_size_);
  return is_last_ ? last_ : last_ + kLeastPause;
}

void Reporter::Serve() {
  Lock lock(mutex_);
  for (;;) {
    while (is_over_ || Clock::now() < Due()) {
      is_over_ ? due_.wait(lock) : static_cast<void>(due_.wait_until(lock, Due()));
    }
    const std::uint64_t wanted = wanted_;
    last_ = Clock::now();
    is_sending_ = true;
    lock.unlock();
    bool is_told = Reach();
    lock.lock();
    if (is_told) {
      wire::WorkerReport report;
      report.task_id = settings_.task_id;
      report.rank = rank_;
      report.host = host_;
      report.pid = getpid();
      report.every = std::chrono::duration<double>(Interval(settings_.report_every, world_size_)).count();
      report.progress = progress_;
      report.reading = reading_;
      TakeTrace(report);
      lock.unlock();
      CallStatistics::Snapshot counted = statistics_.Take(Clock::now());
      report.call = counted.call;
      report.traffic = counted.traffic;
      report.waits = counted.waits;
      report.waits_dropped = counted.waits_dropped;
      is_told = Send(wire::Encode(report));
      if (!is_told) statistics_.PutBack(std::move(counted));
      lock.lock();
      for (auto event = report.trace.rbegin(); !is_told && event != report.trace.rend(); ++event) {
        event->begin_ns -= clock_offset_ns_;  // the next connection measures another offset
        trace_.push_front(std::move(*event));
      }
    }
    is_sending_ = false;
    if (!is_told) line_ = {};
    // A report counts as sent only once all events that must precede it are sent.
    if (is_told && trace_.size() < wire::kMaxTracedEvents && (trace_.empty() || !is_last_)) sent_ = wanted;
    is_last_ = is_last_ && sent_ < wanted_;
    backoff_ = is_told ? milliseconds(0) : std::clamp(backoff_ * 2, kFirstBackoff, kMaxBackoff);
    changed_.notify_all();
  }
}

/// Moves as many events as one report holds into `report`, with times on the tracker's clock.
void Reporter::TakeTrace(wire::WorkerReport& report) {
  while (!trace_.empty() && report.trace.size() < wire::kMaxTracedEvents) {
    report.trace.push_back(std::move(trace_.front()));
    report.trace.back().begin_ns += clock_offset_ns_;
    trace_.pop_front();
  }
  if (dropped_ == 0 || !trace_.empty() || report.trace.empty()) return;
  wire::TracedEvent& last = report.trace.back();
  last.numbers.emplace_back("events dropped behind it", std::exchange(dropped_, 0));
}

/// Connects to the tracker if necessary. Returns whether it is connected.
bool Reporter::Reach() {
  if (connection_) return true;
  try {
    auto connection =
        std::make_unique<TrackerConnection>(settings_, [this](int descriptor) { Connected(descriptor); });
    connection->Send(wire::Writer().Int(wire::kReportMagic).Take());
    if (settings_.report_timeline) MeasureClock(*connection);
    connection_ = std::move(connection);
    return true;
  } catch (const std::exception& error) {
    if (settings_.debug) Say("rabit: cannot send a report to the tracker: {}", error.what());
    return false;
  }
}

/// Called on the new connection before it is encrypted. Throws EngineError if the process is ending, since
/// OpenSSL may already be gone.
void Reporter::Connected(int descriptor) {
  const Lock lock(mutex_);
  if (is_over_) throw EngineError("the process ends");
  line_ = CloseOnForkDescriptor(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
}

/// Sets clock_offset_ns_ as in NTP: the tracker is assumed to read its clock halfway between question and
/// answer.
void Reporter::MeasureClock(TrackerConnection& connection) {
  wire::WorkerReport question;
  question.asks_clock = true;
  const std::string asked = wire::Encode(question);
  constexpr std::size_t kMostDigits = 32;
  Clock::duration fastest = Clock::duration::max();
  for (int i = 0; i < kClockQuestions; ++i) {
    const Clock::time_point before = Clock::now();
    connection.Send(asked);
    const std::string answer = connection.ReadString("its time", kMostDigits, before + kClockPatience);
    const Clock::duration took = Clock::now() - before;
    if (took >= fastest) continue;
    fastest = took;
    const auto middle = std::chrono::nanoseconds((before + took / 2).time_since_epoch());
    clock_offset_ns_ = wire::DecodeClockAnswer(answer).now_ns - middle.count();
  }
}

bool Reporter::Send(const std::string& bytes) {
  try {
    connection_->Send(bytes);
    return true;
  } catch (const std::exception& error) {
    connection_.reset();
    if (settings_.debug) Say("rabit: cannot send a report to the tracker: {}", error.what());
    return false;
  }
}

/// Called when the process is ending: the thread must not be sending while the data of its libraries is
/// destroyed. If it is still connecting, Connected() stops it.
void Reporter::End() {
  if (!IsOfThisProcess()) return;
  Lock lock(mutex_);
  if (owner_ != nullptr) Want(lock);  // the process has not left the job, so its last calls are unreported
  lock.unlock();
  AwaitSent();
  lock.lock();
  is_over_ = true;
  const auto is_idle = [&] { return !is_sending_ || !line_; };
  if (changed_.wait_for(lock, kLastReportPatience, is_idle)) return;
  shutdown(line_.fd(), SHUT_RDWR);  // unblocks the thread, whatever it is waiting for
  changed_.wait_for(lock, kLastReportPatience, is_idle);
}

}  // namespace warren::reporting
