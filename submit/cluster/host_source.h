// The source of a job's hosts: a host file, or a script that prints them (--host-discovery). In an elastic
// job, the source is read repeatedly while the job runs.
//
// HostReadings interprets each reading and does no I/O; HostSource reads the source.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "submit/cluster/host_file.h"
#include "submit/options/options.h"
#include "submit/output/log_line.h"
#include "submit/process/children.h"

namespace warren::submit {

/// The pause between the end of one run of the discovery script and the start of the next.
inline constexpr std::chrono::seconds kDiscoveryInterval{5};
/// A discovery script that takes longer than this is killed.
inline constexpr std::chrono::seconds kDiscoveryPatience{20};
/// The interval between readings of the host file.
inline constexpr std::chrono::seconds kHostFileInterval{1};

/// Parses the output of a discovery script: lines as in a host file, except that "node1:4" means four slots,
/// as with Horovod, and that "node1:0" is left out. The number of a line with several hosts applies to all of
/// them. Returns an empty list if there are no hosts. Throws
/// std::runtime_error like ParseHosts for other errors.
std::vector<Host> ParseDiscovered(std::string_view text, const std::string& source);

/// The source of the hosts, for messages: "the host file" or "--host-discovery".
std::string HostsFrom(const Options& options);

/// The hosts at the start of the job. With --host-discovery, these are the hosts that Discover has found; the
/// list is empty if it has found none. Without --host-discovery, throws std::runtime_error if there is no
/// valid host file.
std::vector<Host> HostsAtStart(const Options& options);

/// Runs the discovery script, if the options name one, and stores its output in `options.discovered_hosts`
/// for HostsAtStart. Throws std::runtime_error if the script does not exist or is not executable. If no job
/// is to run (e.g. with --dry-run), also throws if the script fails, takes too long, or prints too much or
/// invalid hosts; in a job, HostSource reports such errors.
void Discover(Options& options);

/// The output of a script, or the content of a file.
struct HostReading {
  std::string text;
  std::string error = {};  ///< why the text could not be read; empty if it was read
};

class HostReadings {
 public:
  using Parse = std::function<std::vector<Host>(const std::string& text)>;
  /// `known`: the hosts before the first reading. `what` names the source: "the host file" or
  /// "--host-discovery". `parse` may throw std::runtime_error.
  HostReadings(std::vector<Host> known, std::string what, Parse parse)
      : known_(std::move(known)), what_(std::move(what)), parse_(std::move(parse)) {}

  struct Result {
    std::optional<std::vector<Host>> hosts;  ///< the hosts, if they have changed
    std::optional<LogLine> line;             ///< a message to the user, if there is one
  };
  /// Interprets a reading. A reading that fails, or that names no hosts although hosts are known, leaves the
  /// hosts unchanged. The first of several such readings in a row is reported, and so is the first valid
  /// reading after them.
  Result Take(const HostReading& reading);
  /// Like Take, for a file that is read repeatedly. A text only counts once two successive readings agree,
  /// since the file may be read while it is being written.
  Result TakeFile(const HostReading& reading);
  const std::vector<Host>& known() const { return known_; }

 private:
  std::vector<Host> known_;
  std::string what_;
  Parse parse_;
  bool fails_ = false;
  std::optional<std::string> last_text_;  ///< the last reading of a file; nullopt if it could not be read
  bool is_taken_ = false;                 ///< whether last_text_ has been interpreted
};

class HostSource {
 public:
  /// `changed` is called from the io_context with the new hosts. `options` must outlive this object.
  HostSource(boost::asio::io_context& io, Children& children, const Options& options, std::vector<Host> known,
             std::function<void(std::vector<Host>)> changed);

  /// Reads the hosts periodically until Stop.
  void Begin();
  void Stop();

 private:
  bool has_script() const { return !options_.host_discovery.empty(); }
  std::chrono::seconds interval() const;
  void ReadAfter(std::chrono::seconds wait);
  void ReadFile();
  void RunScript();
  void Take(const HostReading& reading);
  void Report(HostReadings::Result result);

  Children& children_;
  const Options& options_;
  std::function<void(std::vector<Host>)> changed_;
  HostReadings readings_;
  boost::asio::steady_timer timer_;
  boost::asio::steady_timer patience_;
  std::optional<pid_t> script_;
  bool runs_ = false;
  bool is_first_ = true;
};

}  // namespace warren::submit
