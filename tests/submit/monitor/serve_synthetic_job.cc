// Serves the metrics and the page of a synthetic job, for tests and for viewing.
//
//   serve-synthetic-job [--workers N] [--port P] [--at SECONDS] [--speed X] [--keep FILE] [--measure yes]
//
// Prints both URLs, and later each request to cancel the job or to collect a stack. The job is SECONDS old at
// first and ages X seconds per second. The program ends when the job is over, or when its standard input ends
// or has data. With --keep, it only writes the kept page at that age. With --measure yes, it only prints the
// cost of each representation of the job.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "submit/monitor/history.h"
#include "submit/monitor/kept_page.h"
#include "submit/monitor/open_metrics.h"
#include "submit/monitor/output_history.h"
#include "submit/monitor/page_state.h"
#include "submit/monitor/web_request.h"
#include "submit/monitor/web_server.h"
#include "tests/submit/monitor/synthetic_job.h"

namespace warren::submit {
namespace {

namespace asio = boost::asio;

class ServedJob {
 public:
  ServedJob(asio::io_context& io, int workers, int port, double at, double speed)
      : io_(io),
        workers_(workers),
        at_(at),
        speed_(speed),
        output_(static_cast<std::size_t>(workers)),
        usage_(static_cast<std::size_t>(workers)),
        timer_(io),
        input_(io, dup(STDIN_FILENO)) {
    for (double second = 0; second < at; second += 1) Speak(second);
    WebServerOptions options;
    options.metrics = options.page = WebAddress{"127.0.0.1", static_cast<std::uint16_t>(port)};
    const wire::JobToken token = wire::JobToken::Random();
    options.page_token = PageToken(token);
    server_ = std::make_unique<WebServer>(
        io, options, WebServerCallbacks{[this] { return SyntheticJob(workers_, Age()); }, Sources(token)});
    fmt::print("{}\n{}\n", server_->MetricsUrl(), server_->PageUrl());
    std::fflush(stdout);
    input_.async_read_some(asio::buffer(byte_),
                           [this](const boost::system::error_code&, std::size_t) { End(); });
    Tick();
  }

  /// An age at which the job is over.
  static constexpr double kEnd = 1e6;

 private:
  double Age() const {
    return at_ + speed_ * std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  }

  PageSources Sources(const wire::JobToken& token) {
    PageSources page;
    page.output = &output_;
    page.usage = &usage_;
    page.cancel = [] {
      fmt::print("cancel\n");
      std::fflush(stdout);
    };
    page.dump = [this](std::size_t index) {
      if (index >= static_cast<std::size_t>(workers_)) return false;
      fmt::print("stack {}\n", index);
      std::fflush(stdout);
      return true;
    };
    page.history_folder = HistoryFolder(std::getenv("XDG_STATE_HOME"), nullptr);
    page.view_token = ViewToken(token);
    return page;
  }

  void Speak(double second) {
    std::vector<Usage> usage;
    for (const WorkerSnapshot& worker : SyntheticJob(workers_, second).workers) {
      usage.push_back({worker.cores_used, worker.sample ? worker.sample->resident_bytes : 0});
    }
    usage_.Add(second, usage);
    for (int i = 0; i < workers_; ++i) {
      output_.Add(static_cast<std::size_t>(i), i == 2 ? Stream::kErr : Stream::kOut,
                  SyntheticLine(i, second));
    }
  }

  void Tick() {
    timer_.expires_after(std::chrono::milliseconds(500));
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (error) return;
      Speak(Age());
      if (SyntheticJob(1, Age()).is_over) return End();
      Tick();
    });
  }

  void End() {
    timer_.cancel();
    server_->Finish(SyntheticJob(workers_, kEnd), [this] { io_.stop(); });
  }

  asio::io_context& io_;
  int workers_;
  double at_;
  double speed_;
  OutputHistory output_;
  UsageHistory usage_;
  asio::steady_timer timer_;
  asio::posix::stream_descriptor input_;
  char byte_[1] = {};
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::unique_ptr<WebServer> server_;
};

void Keep(const std::string& path, int workers, double at) {
  OutputHistory output(static_cast<std::size_t>(workers));
  for (double second = 0; second < std::min(at, 200.0); second += 1) {
    for (int i = 0; i < workers; ++i)
      output.Add(static_cast<std::size_t>(i), Stream::kOut, SyntheticLine(i, second));
  }
  std::ofstream(path) << KeptPage(SyntheticJob(workers, at), output, UsageHistory(0));
}

/// Prints the size and the time of generation of the page's whole state, of one second's change and of the
/// metrics, and the time to copy a snapshot.
void Measure(int workers) {
  const JobSnapshot before = SyntheticJob(workers, 50);
  const JobSnapshot now = SyntheticJob(workers, 51);
  const auto measure = [&](const char* name, auto make) {
    constexpr int kTimes = 200;
    const auto began = std::chrono::steady_clock::now();
    std::size_t bytes = 0;
    for (int i = 0; i < kTimes; ++i) bytes = make().size();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - began;
    fmt::print("{}: {:.0f} us, {} bytes\n", name, took.count() / kTimes, bytes);
  };
  measure("state", [&] { return PageState(now); });
  measure("change", [&] { return PageChange(before, now); });
  measure("metrics", [&] { return OpenMetrics(now); });
  measure("copy", [&] { return std::string(JobSnapshot(now).workers.size(), 'x'); });
}

int Main(int argc, char** argv) {
  int workers = 8;
  int port = 0;
  double at = 0;
  double speed = 1;
  std::string keep;
  bool measure = false;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--workers") workers = std::atoi(argv[i + 1]);
    if (name == "--port") port = std::atoi(argv[i + 1]);
    if (name == "--at") at = std::atof(argv[i + 1]);
    if (name == "--speed") speed = std::atof(argv[i + 1]);
    if (name == "--keep") keep = argv[i + 1];
    if (name == "--measure") measure = std::string_view(argv[i + 1]) == "yes";
  }
  if (measure) {
    Measure(workers);
  } else if (!keep.empty()) {
    Keep(keep, workers, at);
  } else {
    asio::io_context io;
    const ServedJob job(io, workers, port, at, speed);
    io.run();
  }
  return 0;
}

}  // namespace
}  // namespace warren::submit

int main(int argc, char** argv) {
  return warren::submit::Main(argc, argv);
}
