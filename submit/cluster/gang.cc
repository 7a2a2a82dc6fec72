#include "submit/cluster/gang.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <utility>

#include "submit/cluster/script.h"
#include "submit/cluster/temporary_files.h"
#include "submit/command.h"
#include "submit/output/line_splitter.h"
#include "submit/process/environment.h"
#include "submit/process/guardian.h"
#include "wire/job_token.h"

namespace warren::submit {
namespace {

namespace asio = boost::asio;

/// How long a launcher may take to end after the last of its processes has, and after SIGTERM: Open MPI's
/// takes more than 2 s, and leaves processes behind when it is hurried.
constexpr std::chrono::seconds kLauncherPatience{10};
constexpr std::chrono::milliseconds kLauncherGrace{3500};
/// The processes end within kStopGrace, and with them the launcher by itself.
constexpr std::chrono::milliseconds kLastWordsPatience{500};
/// How often a queue is asked: soon after a change, rarely when nothing happens.
constexpr std::chrono::milliseconds kAskSoon{500};
constexpr std::chrono::seconds kAskLater{5};
/// So often a queue may call a job running of which a process is gone, until that is believed.
constexpr int kAsksAboutLoss = 6;
constexpr std::size_t kLastWordsBytes = 4000;
constexpr int kLost = 255;

std::string LastLine(const std::string& text) {
  std::string last;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t\r-=*") != std::string::npos) last = line;
  }
  return last;
}

ExitStatus LostStatus(const std::string& story) {
  return {kLost, 0, false, story};
}

const ExitStatus kLostWithoutAWord =
    LostStatus("was lost without a word: it was killed, or its host is gone");

tracker::Environment WithoutTask(tracker::Environment environment) {
  std::erase_if(environment, [](const auto& entry) {
    return entry.first == "DMLC_TASK_ID" || entry.first == "DMLC_NUM_ATTEMPT";
  });
  return environment;
}

/// The port of the tracker or the scheduler, whichever the job has.
std::uint16_t PortOf(const PlannedProcess& process) {
  for (const auto& [name, value] : process.environment) {
    if (name == PortVariable(process)) return static_cast<std::uint16_t>(std::stoi(value));
  }
  return 0;
}

GangPlan PlanGang(const Options& options, const PlannedProcess& example, std::size_t first, std::size_t count,
                  const GangScriptContext& context) {
  GangPlan plan;
  plan.options = &options;
  plan.role = example.role;
  plan.first = first;
  plan.count = count;
  plan.job_name =
      options.job_name.empty()
          ? fmt::format("dmlc-{}", std::filesystem::path(example.argv.front()).filename().string())
          : options.job_name;
  PlannedProcess process = example;
  process.environment = WithoutTask(std::move(process.environment));
  const bool shares =
      example.role == tracker::Role::kWorker && ThreadsOf(options, InheritedNames()) == Threads::kShare;
  tracker::Environment secrets;
  for (const auto& entry : process.environment) {
    if (entry.first == wire::kTokenVariable) secrets.push_back(entry);
  }
  plan.secrets = SecretsOf(secrets, context.home_key);
  plan.shared_directory = fmt::format("{}/.dmlc-submit-{}-{}", context.directory, context.job_mark, first);
  plan.script = [process, first, count, context, shares](const ScriptSetting& setting) {
    GangScriptContext whole = context;
    if (!setting.directory.empty()) whole.directory = setting.directory;
    PlannedProcess one = process;
    one.environment = setting.environment;
    for (const auto& entry : process.environment) {
      std::erase_if(one.environment, [&](const auto& other) { return other.first == entry.first; });
      one.environment.push_back(entry);
    }
    whole.archives = setting.archives;
    whole.secrets_file = setting.secrets_file;
    if (!setting.secrets_file.empty()) {
      std::erase_if(one.environment, [](const auto& entry) { return entry.first == wire::kTokenVariable; });
    }
    if (shares) whole.cores = setting.cores;
    return GangScript(one, first, count, setting.rank, whole);
  };
  return plan;
}

}  // namespace

struct GangCluster::Place {
  enum class State {
    kUnwanted,  ///< it has not been started, or has ended
    kWanted,    ///< it is to run as soon as its script is here
    kRunning,
    kLost,  ///< its script left without a word, and the queue is being asked why
  };
  State state = State::kUnwanted;
  int attempt = 0;
  std::uint16_t port = 0;
  bool was_here = false;  ///< since its gang was launched
  ExitStatus status;      ///< of the last attempt
};

/// The processes of one role.
struct GangCluster::Gang {
  Gang(asio::io_context& io, std::size_t first_index, std::size_t number)
      : first(first_index), count(number), patience(io), ask_timer(io) {}

  std::size_t first;
  std::size_t count;
  PlannedProcess example;
  Launch launch;
  std::unique_ptr<TemporaryFiles> files;
  pid_t launcher = -1;
  bool launched = false;  ///< the launcher runs, or the job is in the queue
  std::string job;        ///< its number in the queue
  std::string printed;    ///< by the launcher, on standard output, for the number
  std::string words;      ///< the last of what the launcher said
  LineSplitter out, err;
  std::optional<ExitStatus> ended;  ///< how the launcher or the job in the queue failed
  std::optional<std::size_t> held;  ///< the last process that ended, until the launcher has, too
  asio::steady_timer patience;
  asio::steady_timer ask_timer;
  bool asking = false;
  int asks_about_loss = 0;
  std::string last_report;
  bool requeued = false;
  bool stopped = false;  ///< what still runs of it ends; started again it is launched anew

  std::size_t end() const { return first + count; }
};

GangCluster::GangCluster(asio::io_context& io, Children& children, const Options& options,
                         const std::string& host, ClusterEvents events, MakeLaunch make_launch)
    : io_(io),
      children_(children),
      options_(options),
      events_(std::move(events)),
      make_launch_(std::move(make_launch)),
      host_(host),
      job_mark_(NewJobMark()),
      home_key_(wire::JobToken::Random().ToHex()),
      home_(io, job_mark_, home_key_, host, options.port, options.port_end, EventsOfHome()) {
  const auto servers = static_cast<std::size_t>(options.num_servers);
  if (servers > 0) gangs_.push_back(std::make_unique<Gang>(io, 1, servers));  // 0 is the scheduler
  gangs_.push_back(std::make_unique<Gang>(io, servers > 0 ? 1 + servers : 0,
                                          static_cast<std::size_t>(options.num_workers)));
}

GangCluster::~GangCluster() = default;

GangCluster::Gang& GangCluster::GangOf(std::size_t index) {
  for (const auto& gang : gangs_) {
    if (index < gang->end()) return *gang;
  }
  return *gangs_.back();
}

// --- starting --------------------------------------------------------------------------------------------

Started GangCluster::Start(std::size_t index, const PlannedProcess& process, int attempt) {
  stopping_ = false;
  Gang& gang = GangOf(index);
  Place& place = places_[index];
  place.state = Place::State::kWanted;
  place.attempt = attempt;
  place.port = PortOf(process);
  if (index == gang.first) gang.example = process;
  if (gang.stopped) place.was_here = false;
  if (home_.IsHere(index)) {
    GoIfWanted(index);
  } else if (gang.launched && place.was_here && !gang.requeued) {
    asio::post(io_, [this, index, name = gang.launch.name] {
      if (places_[index].state != Place::State::kWanted) return;
      End(index, LostStatus(fmt::format("cannot be started again: its place under {} is gone", name)));
    });
  }
  if (index + 1 == gang.end()) LaunchIfAllAreWanted(gang);
  return {};
}

void GangCluster::LaunchIfAllAreWanted(Gang& gang) {
  if (std::exchange(gang.requeued, false)) return AskLater(gang);  // the queue has it already
  if (gang.launched) return;  // what is left of the one before ends first
  for (std::size_t i = gang.first; i < gang.end(); ++i) {
    if (places_[i].state != Place::State::kWanted) return;
  }
  try {
    LaunchGang(gang);
  } catch (const std::runtime_error& error) {
    asio::post(io_, [this, story = std::string(error.what())] { events_.trouble(story); });
  }
}

void GangCluster::LaunchGang(Gang& gang) {
  const GangScriptContext context{.job_mark = job_mark_,
                                  .directory = std::filesystem::current_path().string(),
                                  .home_host = host_,
                                  .home_port = home_.port(),
                                  .home_key = home_key_};
  gang.launch = make_launch_(PlanGang(options_, gang.example, gang.first, gang.count, context));
  gang.files = std::make_unique<TemporaryFiles>(gang.launch.files, gang.launch.directory);
  LeaveFarewell(gang);
  gang.ended.reset();
  gang.printed.clear();
  gang.words.clear();
  gang.job.clear();
  gang.last_report.clear();
  for (std::size_t i = gang.first; i < gang.end(); ++i) places_[i].was_here = false;
  const std::vector<std::string> words = gang.files->Named(gang.launch.words);
  SpawnRequest request{FindCommand(words.front(), SearchPath()).file, words,
                       InheritedWith(gang.launch.environment, gang.example.unset),
                       !gang.launch.input.empty()};
  spdlog::debug("{}", ShellCommand(words));
  gang.launcher = children_.Start(
      request, {[this, &gang](Stream stream, std::string_view bytes) { OnSaid(gang, stream, bytes); },
                [this, &gang](const ExitStatus& status) { OnLauncherExit(gang, status); }});
  gang.launched = true;
  gang.stopped = false;
  if (request.reads_input) {
    children_.Write(gang.launcher, gang.launch.input);
    children_.CloseInput(gang.launcher);
  }
}

/// What the guardian is to undo should dmlc-submit be killed.
void GangCluster::LeaveFarewell(const Gang& gang) {
  std::string commands;
  if (gang.files && !gang.files->directory().empty()) {
    commands = ShellCommand({"rm", "-r", gang.files->directory()});
  }
  if (!gang.job.empty()) {
    commands += (commands.empty() ? "" : "; ") + ShellCommand(gang.launch.queue->cancel(gang.job));
  }
  children_.SetFarewell(fmt::format("gang {}", gang.first), commands);
}

void GangCluster::OnSaid(Gang& gang, Stream stream, std::string_view bytes) {
  gang.words += bytes;
  if (gang.words.size() > kLastWordsBytes) gang.words.erase(0, gang.words.size() - kLastWordsBytes);
  if (gang.launch.queue && !gang.launch.queue->returns && gang.job.empty()) {
    if (const auto id = gang.launch.queue->id(gang.words)) {
      gang.job = *id;
      LeaveFarewell(gang);
      spdlog::info("this is job {} of {}", gang.job, gang.launch.queue->name);
    }
  } else if (gang.launch.queue && gang.launch.queue->returns && stream == Stream::kOut) {
    gang.printed += bytes;
    return;  // it is the number of the job
  }
  if (stopping_) return;  // what it says of processes that are being stopped would bury the story
  LineSplitter& splitter = stream == Stream::kOut ? gang.out : gang.err;
  splitter.Append(bytes, [&](std::string_view piece) { events_.said(gang.launch.name, stream, piece); });
}

/// The launcher has ended: with all its processes, or, where it only puts them into a queue, before them.
void GangCluster::OnLauncherExit(Gang& gang, const ExitStatus& status) {
  gang.launcher = -1;
  gang.patience.cancel();
  TellWhenIdle();
  for (auto* const splitter : {&gang.out, &gang.err}) {
    splitter->Finish([&](std::string_view piece) { events_.said(gang.launch.name, Stream::kErr, piece); });
  }
  if (gang.launch.queue && gang.launch.queue->returns && status.ok()) {
    const auto id = gang.launch.queue->id(gang.printed);
    if (id) {
      gang.job = *id;
      LeaveFarewell(gang);
      if (gang.stopped) return CancelJob(gang);  // while it was being put there
      spdlog::info("{} job {} of {}",
                   gang.example.role == tracker::Role::kWorker ? "this is" : "the servers are", gang.job,
                   gang.launch.queue->name);
      return AskLater(gang);
    }
    return EndGang(gang, LostStatus(fmt::format("was not started: {} did not tell the number of the job: {}",
                                                gang.launch.name, LastLine(gang.printed + gang.words))));
  }
  EndGang(gang, status);
}

/// Nothing of the gang will call any more.
void GangCluster::EndGang(Gang& gang, const ExitStatus& status) {
  gang.launched = false;
  gang.job.clear();
  gang.files.reset();
  LeaveFarewell(gang);
  gang.ask_timer.cancel();
  if (gang.stopped && !stopping_) return LaunchIfAllAreWanted(gang);
  const std::string last = LastLine(gang.words);
  std::string story = !status.story.empty() ? status.story
                                            : fmt::format("ended with {}, which {}{}{}", gang.launch.name,
                                                          status.Describe(), last.empty() ? "" : ": ", last);
  bool any_called = false;
  for (std::size_t i = gang.first; i < gang.end(); ++i) any_called = any_called || places_[i].was_here;
  if (gang.launch.queue && !any_called && !stopping_) {
    story += fmt::format("; none of its processes reached {} port {} (see --host-ip)", host_, home_.port());
  }
  const ExitStatus failure{status.ok() ? kLost : status.ShellCode(), 0, false, story};
  if (!status.ok()) gang.ended = failure;
  if (const auto held = std::exchange(gang.held, std::nullopt)) {
    places_[*held].state = Place::State::kUnwanted;
    Report(*held, status.ok() ? places_[*held].status : failure);
  }
  bool told = false;
  for (std::size_t i = gang.first; i < gang.end(); ++i) {
    Place& place = places_[i];
    if (place.state == Place::State::kUnwanted || home_.IsConnected(i)) continue;
    // Without bash on their hosts the processes never call, and end as their launcher does.
    const bool never_called = !place.was_here && !gang.launch.queue;
    if (never_called && status.ok() && !std::exchange(told, true)) {
      spdlog::warn("processes that never called are taken to have ended as {} did", gang.launch.name);
    }
    place.state = Place::State::kUnwanted;
    Report(i, status.ok() && never_called ? ExitStatus{} : failure);
  }
}

// --- what processes do -----------------------------------------------------------------------------------

HomeEvents GangCluster::EventsOfHome() {
  return {[this](std::size_t index, const std::string& host) { OnArrived(index, host); },
          [this](std::size_t index, Stream stream, std::string_view bytes) {
            if (places_.contains(index)) events_.output(index, stream, bytes);
          },
          [this](std::size_t index, const Note& note) { OnNote(index, note); },
          [this](std::size_t index) { OnLeft(index); },
          [this](std::size_t index, const std::string& host) { OnKeyless(index, host); }};
}

/// It cannot prove that it is of this job, so nothing depends on what it says.
void GangCluster::OnKeyless(std::size_t index, const std::string& host) {
  if (!places_.contains(index) || !keyless_.insert(index).second) return;
  spdlog::warn(
      "worker {}: {} cannot read the job's token in '{}/environment'; the hosts have to share the directory "
      "in which dmlc-submit is started",
      index - GangOf(index).first, host, GangOf(index).launch.directory);
}

void GangCluster::OnArrived(std::size_t index, const std::string& host) {
  if (!places_.contains(index)) return home_.End(index);
  if (stopping_) return home_.End(index);
  places_[index].was_here = true;
  Gang& gang = GangOf(index);
  if (gang.launch.queue) events_.waits();  // no longer for the queue, from now on
  events_.located(index, {-1, host});
  GoIfWanted(index);
}

void GangCluster::GoIfWanted(std::size_t index) {
  Place& place = places_[index];
  if (place.state != Place::State::kWanted) return;
  place.state = Place::State::kRunning;
  home_.Go(index, place.attempt, place.port);
}

void GangCluster::OnNote(std::size_t index, const Note& note) {
  if (!places_.contains(index)) return;
  std::istringstream words(note.text);
  int attempt = 0;
  if (note.kind == "start") {
    Started where;
    words >> attempt >> where.pid >> where.host;
    events_.located(index, where);
  } else if (note.kind == "exit" || note.kind == "stopped") {
    int code = 0;
    words >> attempt >> code;
    Place& place = places_[index];
    Gang& gang = GangOf(index);
    place.status = FromShellCode(code);
    if (note.kind == "exit" || stopping_ || gang.job.empty() || !gang.launch.queue->returns) {
      return End(index, place.status);
    }
    // The queue has ended it: what the job is now, is worth more to the user than the signal.
    place.state = Place::State::kLost;
    gang.asks_about_loss = 0;
    Ask(gang);
  } else if (note.kind == "fail") {
    End(index, {1, 0, false, fmt::format("could not be started: {}", note.text)});
  }
}

void GangCluster::OnLeft(std::size_t index) {
  Place& place = places_[index];
  Gang& gang = GangOf(index);
  if (place.state == Place::State::kUnwanted) return;
  if (place.state == Place::State::kWanted && !place.was_here) return;  // one of the gang before
  if (gang.launch.queue && gang.launch.queue->returns && gang.launched && !stopping_) {
    if (std::exchange(place.state, Place::State::kLost) == Place::State::kLost) return;
    place.status = kLostWithoutAWord;
    gang.asks_about_loss = 0;
    return Ask(gang);
  }
  if (gang.ended && !stopping_) return End(index, *gang.ended);
  End(index, stopping_ ? ExitStatus{0, SIGTERM, false, {}} : kLostWithoutAWord);
}

bool GangCluster::NothingIsLeft(const Gang& gang) const {
  for (std::size_t i = gang.first; i < gang.end(); ++i) {
    if (places_.at(i).state != Place::State::kUnwanted) return false;
  }
  return true;
}

/// The end of a gang is the end of its launcher.
void GangCluster::End(std::size_t index, const ExitStatus& status) {
  Place& place = places_[index];
  if (place.state == Place::State::kUnwanted) return;
  Gang& gang = GangOf(index);
  place.state = Place::State::kUnwanted;
  place.status = status;
  const bool launcher_runs = gang.launcher >= 0 || !gang.job.empty();
  if (!status.ok() || stopping_ || !launcher_runs || !NothingIsLeft(gang)) return Report(index, status);
  gang.held = index;
  if (!gang.job.empty()) {
    gang.ask_timer.expires_after(std::chrono::milliseconds{100});
    gang.ask_timer.async_wait([this, &gang](const boost::system::error_code& error) {
      if (!error) Ask(gang);
    });
  }
  gang.patience.expires_after(kLauncherPatience);
  gang.patience.async_wait([this, &gang](const boost::system::error_code& error) {
    if (error || !gang.held) return;
    spdlog::warn("{} does not end although all its processes have; it is stopped", gang.launch.name);
    const std::size_t held = *std::exchange(gang.held, std::nullopt);
    StopLauncher(gang);
    Report(held, places_[held].status);
  });
}

void GangCluster::Report(std::size_t index, const ExitStatus& status) {
  asio::post(io_, [this, index, status] { events_.exited(index, status); });
}

// --- the queue -------------------------------------------------------------------------------------------

void GangCluster::Run(const std::vector<std::string>& words,
                      const std::function<void(const std::string& printed, const ExitStatus& status)>& done) {
  const auto printed = std::make_shared<std::string>();
  const auto complained = std::make_shared<std::string>();
  const auto pid = std::make_shared<pid_t>(-1);
  try {
    *pid = children_.Start({FindCommand(words.front(), SearchPath()).file, words, InheritedWith({}, {})},
                           {[printed, complained](Stream stream, std::string_view bytes) {
                              *(stream == Stream::kOut ? printed : complained) += bytes;
                            },
                            [this, pid, printed, complained, done](const ExitStatus& status) {
                              commands_.erase(*pid);
                              TellWhenIdle();
                              done(status.ok() ? *printed : *printed + *complained, status);
                            }});
    commands_.insert(*pid);
  } catch (const std::runtime_error& error) {
    asio::post(io_, [done, said = std::string(error.what())] { done(said, {kNotFound, 0, false, {}}); });
  }
}

void GangCluster::AskLater(Gang& gang) {
  bool settled = !gang.held;
  for (std::size_t i = gang.first; i < gang.end(); ++i) {
    settled = settled && places_[i].state == Place::State::kRunning;
  }
  gang.ask_timer.expires_after(settled ? std::chrono::milliseconds(kAskLater) : kAskSoon);
  gang.ask_timer.async_wait([this, &gang](const boost::system::error_code& error) {
    if (!error) Ask(gang);
  });
}

void GangCluster::Ask(Gang& gang) {
  if (gang.job.empty() || !gang.launch.queue->returns || std::exchange(gang.asking, true)) return;
  Run(gang.launch.queue->ask(gang.job),
      [this, &gang, job = gang.job](const std::string& printed, const ExitStatus& status) {
        gang.asking = false;
        if (gang.job != job) return AskLater(gang);
        const auto report = gang.launch.queue->report(gang.job, printed, status.ShellCode());
        if (report) {
          OnReport(gang, *report);
        } else if (!stopping_) {
          AskLater(gang);
        }
      });
}

void GangCluster::OnReport(Gang& gang, const JobReport& report) {
  if (report.words != std::exchange(gang.last_report, report.words)) {
    spdlog::log(report.state == JobState::kPending ? spdlog::level::info : spdlog::level::debug,
                "job {} of {}: {}", gang.job, gang.launch.queue->name, report.words);
  }
  if (report.state == JobState::kOver) {
    const bool all_ended = gang.held && NothingIsLeft(gang);
    const std::string story =
        fmt::format("ended with job {} of {}: {}", gang.job, gang.launch.queue->name, report.words);
    if (report.stays) {
      return Run(
          gang.launch.queue->cancel(gang.job),
          [this, &gang, story](const std::string&, const ExitStatus&) { EndGang(gang, LostStatus(story)); });
    }
    return EndGang(gang, all_ended ? ExitStatus{} : LostStatus(story));
  }
  bool lost = false;
  for (std::size_t i = gang.first; i < gang.end(); ++i)
    lost = lost || places_[i].state == Place::State::kLost;
  if (report.state == JobState::kPending) {
    events_.waits();
    if (lost && !stopping_) {
      gang.requeued = true;
      const std::string story =
          fmt::format("job {} was put back into the queue of {}", gang.job, gang.launch.queue->name);
      events_.requeued(story);
      return AskLater(gang);
    }
  } else if (lost && ++gang.asks_about_loss >= kAsksAboutLoss) {
    for (std::size_t i = gang.first; i < gang.end(); ++i) {
      if (places_[i].state != Place::State::kLost) continue;
      End(i, places_[i].status);
    }
  }
  if (!stopping_) AskLater(gang);
}

void GangCluster::CancelJob(Gang& gang) {
  if (gang.job.empty()) return;
  const std::string job = gang.job;
  Run(gang.launch.queue->cancel(job),
      [this, &gang, job](const std::string& printed, const ExitStatus& status) {
        if (!status.ok()) {
          spdlog::warn("job {} of {} could not be cancelled: {}", job, gang.launch.queue->name,
                       LastLine(printed));
        }
        if (gang.launcher < 0) EndGang(gang, {0, SIGTERM, false, {}});
      });
}

// --- the end ---------------------------------------------------------------------------------------------

/// The scripts end their processes when their connections end, and the launcher ends with them.
void GangCluster::Stop() {
  stopping_ = true;
  for (const auto& gang : gangs_) {
    if (const auto held = std::exchange(gang->held, std::nullopt)) Report(*held, places_[*held].status);
    bool any_here = false;
    for (std::size_t i = gang->first; i < gang->end(); ++i) {
      if (home_.IsHere(i)) {
        any_here = true;
        home_.End(i);
      } else if ((gang->requeued || !gang->launched) && places_[i].state != Place::State::kUnwanted) {
        End(i, {0, SIGTERM, false, {}});
      }
    }
    if (gang->requeued) continue;  // the job stays in the queue, and calls again
    gang->stopped = true;
    if (!gang->job.empty()) CancelJob(*gang);
    const bool submits = gang->launch.queue && gang->launch.queue->returns;
    const std::chrono::milliseconds patience =
        any_here ? kStopGrace + kLastWordsPatience : std::chrono::milliseconds{0};
    gang->patience.expires_after(submits ? kLauncherPatience : patience);
    gang->patience.async_wait([this, &gang = *gang](const boost::system::error_code& error) {
      if (!error && gang.stopped) StopLauncher(gang);
    });
  }
}

bool GangCluster::busy() const {
  return !commands_.empty() ||
         std::any_of(gangs_.begin(), gangs_.end(), [](const auto& gang) { return gang->launcher >= 0; });
}

void GangCluster::TellWhenIdle() {
  asio::post(io_, [this] {
    if (!busy()) events_.idle();
  });
}

void GangCluster::StopLauncher(Gang& gang) {
  if (gang.launcher >= 0) children_.Stop({gang.launcher}, kLauncherGrace);
}

void GangCluster::Kill() {
  for (const auto& gang : gangs_) {
    // One that puts the job into a queue, or takes it out, is let: else the job would stay there.
    if (!gang->launch.queue || !gang->launch.queue->returns) children_.Kill({gang->launcher});
  }
}

std::string ShowGangs(const Options& options, const std::vector<PlannedProcess>& plan,
                      const std::string& host, const GangCluster::MakeLaunch& make_launch) {
  const GangScriptContext context{.job_mark = "JOB",
                                  .directory = std::filesystem::current_path().string(),
                                  .home_host = host,
                                  .home_port = options.port,
                                  .home_key = kShownSecret};
  std::string text;
  for (std::size_t i = 0; i < plan.size();) {
    if (plan[i].role == tracker::Role::kScheduler) {
      text += ShowPlan({plan[i++]});
      continue;
    }
    std::size_t end = i;
    while (end < plan.size() && plan[end].role == plan[i].role) ++end;
    const Launch launch = make_launch(PlanGang(options, plan[i], i, end - i, context));
    text += fmt::format("# {} to {}\n", ProcessName(plan[i].role, 0), end - i - 1);
    for (const auto& [name, content] : launch.files) text += fmt::format("# {}:\n{}", name, content);
    std::vector<std::string> words;
    if (!launch.environment.empty()) words.emplace_back("env");
    for (const auto& [name, value] : launch.environment) words.push_back(fmt::format("{}={}", name, value));
    words.insert(words.end(), launch.words.begin(), launch.words.end());
    text += ShellCommand(words);
    if (!launch.input.empty()) text += fmt::format(" <<'END_OF_INPUT'\n{}END_OF_INPUT", launch.input);
    text += '\n';
    i = end;
  }
  return text;
}

}  // namespace warren::submit
