#include "submit/cluster/host_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "submit/output/last_line.h"
#include "submit/process/capture.h"
#include "submit/process/command.h"
#include "submit/process/environment.h"
#include "submit/process/whole_file.h"

namespace warren::submit {
namespace {

/// Maximum length of the script's standard output; more is an error.
constexpr std::size_t kMostOutputBytes = std::size_t{4} << 20;
/// Number of bytes kept from the end of the script's standard error.
constexpr std::size_t kErrorBytes = 2000;

std::vector<std::string> ScriptWords(const Options& options) {
  return {"sh", "-c", options.host_discovery};
}

std::string Failed(const Options& options, const ExitStatus& status, const std::string& words) {
  return fmt::format("'{}' {}{}", options.host_discovery, status.Describe(),
                     words.empty() ? "" : fmt::format(": {}", words));
}

/// The position of the colon in "node1:4" or "[fe80::1]:4"; npos if no number of slots follows the host.
std::size_t ColonBeforeSlots(std::string_view host) {
  const std::size_t colon = host.rfind(':');
  const bool is_ipv6 = colon != std::string_view::npos && host.find(':') != colon && host[colon - 1] != ']';
  const bool has_number = colon != std::string_view::npos && colon + 1 < host.size() &&
                          host.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
  return has_number && !is_ipv6 ? colon : std::string_view::npos;
}

/// Converts a line such as "node1:4 port=22" to the format of host files. Other lines only lose their
/// comments and trailing white space. Returns an empty line for a host with 0 slots ("node1:0"). Throws
/// std::runtime_error if a number of slots is followed by another host, as in "node1:4,node2:4".
std::string WithSlots(std::string line) {
  const std::size_t comment = line.find('#');
  if (comment != std::string::npos) line.erase(comment);
  line.erase(line.find_last_not_of(" \t\r") + 1);
  const std::string host =
      line.substr(0, std::min(line.find_first_of(" \t", line.find_first_not_of(" \t")), line.size()));
  for (std::string_view left = host; left.find(',') != std::string_view::npos;) {
    if (ColonBeforeSlots(left.substr(0, left.find(','))) != std::string_view::npos) {
      throw std::runtime_error(
          "a number of slots must be at the end of a line and applies to all its hosts; for different numbers, write one host per line, such as node1:4");
    }
    left.remove_prefix(left.find(',') + 1);
  }
  const std::size_t colon = ColonBeforeSlots(host);
  if (colon == std::string::npos) return line;
  if (host.find_first_not_of('0', colon + 1) == std::string::npos) return {};
  return fmt::format("{} slots={}{}", host.substr(0, colon), host.substr(colon + 1),
                     line.substr(host.size()));
}

std::string TooLate(const Options& options) {
  return fmt::format("--host-discovery: '{}' took longer than {} s, and was killed", options.host_discovery,
                     kDiscoveryPatience.count());
}

std::string TooMuch(const Options& options) {
  return fmt::format("--host-discovery: '{}' printed more than {} MiB", options.host_discovery,
                     kMostOutputBytes >> 20);
}

std::vector<Host> ParseText(const Options& options, const std::string& text) {
  return options.host_discovery.empty() ? ParseHosts(text, HostFilePath(options.host_file))
                                        : ParseDiscovered(text, "--host-discovery");
}

}  // namespace

std::vector<Host> ParseDiscovered(std::string_view text, const std::string& source) {
  std::istringstream lines{std::string(text)};
  std::string as_file;
  bool is_empty = true;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    try {
      line = WithSlots(std::move(line));
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(fmt::format("{}:{}: {}", source, number, error.what()));
    }
    is_empty = is_empty && line.find_first_not_of(" \t") == std::string::npos;
    as_file += line + '\n';
  }
  return is_empty ? std::vector<Host>() : ParseHosts(as_file, source);
}

std::string HostsFrom(const Options& options) {
  return options.host_discovery.empty() ? "the host file" : "--host-discovery";
}

std::vector<Host> HostsAtStart(const Options& options) {
  if (options.host_discovery.empty()) return ReadHosts(options.host_file);
  try {
    return ParseDiscovered(options.discovered_hosts, "--host-discovery");
  } catch (const std::runtime_error&) {  // HostSource reports such errors when it reads the hosts
    return {};
  }
}

void Discover(Options& options) {
  if (options.host_discovery.empty()) return;
  const Captured captured = Capture(ScriptWords(options), SearchPath(), kDiscoveryPatience);
  if (captured.exit_code == kNotExecutable || captured.exit_code == kNotFound) {
    throw std::runtime_error(
        fmt::format("--host-discovery: '{}' exited with code {}: there is no such command, or it is not "
                    "executable (chmod +x)",
                    options.host_discovery, captured.exit_code));
  }
  const bool is_job = options.request == Request::kRun && !options.dry_run;
  const bool is_too_much = captured.out.size() > kMostOutputBytes;
  if (captured.is_late || is_too_much) {
    if (!is_job) throw std::runtime_error(is_too_much ? TooMuch(options) : TooLate(options));
    return;
  }
  if (captured.exit_code != 0 && !is_job) {
    throw std::runtime_error(fmt::format("--host-discovery: '{}' exited with code {}", options.host_discovery,
                                         captured.exit_code));
  }
  if (!is_job) ParseDiscovered(captured.out, "--host-discovery");  // throws if it is invalid
  if (captured.exit_code == 0) options.discovered_hosts = captured.out;
}

HostReadings::Result HostReadings::Take(const HostReading& reading) {
  Result result;
  std::vector<Host> hosts;
  std::string error = reading.error;
  try {
    if (error.empty()) hosts = parse_(reading.text);
    if (error.empty() && hosts.empty() && !known_.empty()) error = fmt::format("{}: no hosts", what_);
  } catch (const std::runtime_error& invalid) {
    error = invalid.what();
  }
  if (!error.empty()) {
    if (!std::exchange(fails_, true)) {
      result.line = LogLine{
          Severity::kWarning,
          fmt::format("{}; {}", error,
                      known_.empty() ? "the job waits for hosts" : "the job keeps the hosts that it knows")};
    }
    return result;
  }
  if (!hosts.empty() && std::exchange(fails_, false)) {
    result.line = LogLine{Severity::kInfo, fmt::format("{} names hosts again", what_)};
  }
  if (hosts != known_) {
    known_ = hosts;
    result.hosts = std::move(hosts);
  }
  return result;
}

HostReadings::Result HostReadings::TakeFile(const HostReading& reading) {
  if (!reading.error.empty()) {
    last_text_.reset();
    return Take(reading);
  }
  if (last_text_ != reading.text) {
    last_text_ = reading.text;
    is_taken_ = false;
    return {};
  }
  return std::exchange(is_taken_, true) ? Result() : Take(reading);
}

HostSource::HostSource(boost::asio::io_context& io, Children& children, const Options& options,
                       std::vector<Host> known, std::function<void(std::vector<Host>)> changed)
    : children_(children),
      options_(options),
      changed_(std::move(changed)),
      readings_(std::move(known), HostsFrom(options),
                [&options](const std::string& text) { return ParseText(options, text); }),
      timer_(io),
      patience_(io) {}

void HostSource::Begin() {
  if (std::exchange(runs_, true)) return;
  ReadAfter(is_first_ && readings_.known().empty() ? std::chrono::seconds{0} : interval());
  is_first_ = false;
}

void HostSource::Stop() {
  runs_ = false;
  timer_.cancel();
  patience_.cancel();
  if (script_) children_.Stop({*script_});
}

std::chrono::seconds HostSource::interval() const {
  return has_script() ? kDiscoveryInterval : kHostFileInterval;
}

void HostSource::ReadAfter(std::chrono::seconds wait) {
  if (!runs_) return;
  timer_.expires_after(wait);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error || !runs_) return;
    if (has_script()) {
      RunScript();
    } else {
      ReadFile();
    }
  });
}

void HostSource::ReadFile() {
  const std::string path = HostFilePath(options_.host_file);
  try {
    // Opening a named pipe would block until another process writes to it.
    if (std::error_code error; !std::filesystem::is_regular_file(path, error)) {
      throw std::runtime_error(fmt::format("'{}' is not a regular file that can be read again", path));
    }
    Report(readings_.TakeFile({ReadWholeFile(path)}));
  } catch (const std::runtime_error& error) {
    Report(readings_.TakeFile({{}, fmt::format("the host file: {}", error.what())}));
  }
  ReadAfter(interval());
}

void HostSource::RunScript() {
  const auto out = std::make_shared<std::string>();
  const auto err = std::make_shared<std::string>();
  const auto late = std::make_shared<bool>(false);
  try {
    script_ = children_.Start(
        {FindCommand("sh", SearchPath()).file, ScriptWords(options_), InheritedWith({}, {})},
        {[out, err](Stream stream, std::string_view bytes) {
           if (stream == Stream::kOut) {
             if (out->size() <= kMostOutputBytes) *out += bytes;
           } else {
             AppendToTail(*err, bytes, kErrorBytes);
           }
         },
         [this, out, err, late](const ExitStatus& status) {
           script_.reset();
           patience_.cancel();
           if (!runs_) return;
           if (*late) {
             Take({{}, TooLate(options_)});
           } else if (out->size() > kMostOutputBytes) {
             Take({{}, TooMuch(options_)});
           } else if (!status.ok()) {
             Take({{}, fmt::format("--host-discovery: {}", Failed(options_, status, LastLine(*err)))});
           } else {
             Take({*out});
           }
           ReadAfter(interval());
         }});
  } catch (const std::runtime_error& error) {
    Take({{}, fmt::format("--host-discovery: {}", error.what())});
    return ReadAfter(interval());
  }
  patience_.expires_after(kDiscoveryPatience);
  patience_.async_wait([this, late](const boost::system::error_code& error) {
    if (error || !script_) return;
    *late = true;
    children_.Kill({*script_});
  });
}

void HostSource::Take(const HostReading& reading) {
  Report(readings_.Take(reading));
}

void HostSource::Report(HostReadings::Result result) {
  if (result.line) Write(*result.line);
  if (result.hosts) changed_(std::move(*result.hosts));
}

}  // namespace warren::submit
