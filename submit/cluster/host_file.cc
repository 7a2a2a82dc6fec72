#include "submit/cluster/host_file.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "submit/process/whole_file.h"
#include "wire/printable.h"

namespace warren::submit {
namespace {

constexpr int kMaxSlots = 100'000;
/// Maximum number of hosts in a file; a higher number must be a mistake in a range such as node[1-1000000].
constexpr std::size_t kMaxHosts = 100'000;
/// In "node1:N", a lower number may mean slots. Ports below this one are reserved for system services.
constexpr int kFirstPlainPort = 1024;
constexpr std::size_t kMaxNameLength = 253;  // RFC 1035, section 2.3.4
constexpr std::size_t kMaxLabelLength = 63;
/// Maximum number of ranges in a name such as rack[1-2]node[08-11].
constexpr std::ptrdiff_t kMaxRanges = 16;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

constexpr std::string_view kForms = "a line is a host, optionally followed by slots=N, max_slots=N or port=N";

/// The first 100 bytes of `text` in quotes, on one line and without terminal control characters; "..."
/// follows if the text is longer.
std::string Quoted(std::string_view text) {
  constexpr std::size_t kMostBytes = 100;
  return fmt::format("'{}{}'", wire::PrintableLine(text.substr(0, kMostBytes)),
                     text.size() > kMostBytes ? "..." : "");
}

bool IsNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

int ParseNumber(std::string_view text, int most, std::string_view what) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 1 || value > most) {
    throw std::runtime_error(
        fmt::format("{} is not a valid {}: expected a number from 1 to {}", Quoted(text), what, most));
  }
  return value;
}

std::uint16_t ParsePort(std::string_view text) {
  return static_cast<std::uint16_t>(ParseNumber(text, 65535, "port"));
}

/// The error message for a number after a host suggests slots=N, unless the number is longer than this.
constexpr std::size_t kMostDigits = 9;
/// Longer lines are rejected: they cannot be lists of hosts.
constexpr std::size_t kMostLineBytes = 1 << 20;

/// The settings in a line of a host file, which apply to all hosts of the line.
struct LineOptions {
  std::optional<int> slots;
  int max_slots = 0;
  std::uint16_t port = 0;
};

LineOptions ParseLineOptions(std::istringstream& words, const std::string& host) {
  LineOptions options;
  const auto once = [&host](bool is_first, std::string_view name) {
    if (!is_first) throw std::runtime_error(fmt::format("{} has {} twice on its line", Quoted(host), name));
  };
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const std::string_view value =
        equals == std::string::npos ? std::string_view() : std::string_view(word).substr(equals + 1);
    if (equals != std::string::npos && key == "slots") {
      once(!options.slots, "slots=");
      options.slots = ParseNumber(value, kMaxSlots, "number of slots");
    } else if (equals != std::string::npos && (key == "max_slots" || key == "max-slots")) {
      once(options.max_slots == 0, "max_slots=");
      options.max_slots = ParseNumber(value, kMaxSlots, "number of slots");
    } else if (equals != std::string::npos && key == "port") {
      once(options.port == 0, "port=");
      options.port = ParsePort(value);
    } else if (IsNumber(word) && word.size() <= kMostDigits) {
      throw std::runtime_error(fmt::format("'{0}' is not understood; for {0} slots write: {1} slots={0}",
                                           word, host.size() <= kMaxNameLength ? host : "HOST"));
    } else {
      throw std::runtime_error(fmt::format("{} is not understood; {}", Quoted(word), kForms));
    }
  }
  return options;
}

bool IsAddressOf(int family, const std::string& text) {
  in6_addr address{};
  const bool ends_early = text.find('\0') != std::string::npos;  // inet_pton would stop at the null
  return !ends_early && inet_pton(family, text.c_str(), &address) == 1;
}

std::runtime_error NoHostName(std::string_view name, std::string_view why) {
  return std::runtime_error(fmt::format("{} is not a host name: {}", Quoted(name), why));
}

/// Throws std::runtime_error unless `name` is an address or a host name according to RFC 952 and 1123. Names
/// may also contain "_", which some networks use, and may end with a dot.
void CheckName(const std::string& name) {
  if (name.empty()) throw std::runtime_error("there is no host name");
  if (name[0] == '-') throw NoHostName(name, "it would be read as an option");
  const auto is_allowed = [](unsigned char c) {
    return c < 0x80 && (std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.');
  };
  if (name.find(':') != std::string::npos) {
    const std::size_t percent = std::min(name.find('%'), name.size());
    const bool has_zone =
        std::all_of(name.begin() + static_cast<std::ptrdiff_t>(std::min(percent + 1, name.size())),
                    name.end(), is_allowed);
    if (!IsAddressOf(AF_INET6, name.substr(0, percent)) || !has_zone) {
      throw NoHostName(name, "it is not an IPv6 address either");
    }
    return;
  }
  if (name.find_first_of("{}") != std::string::npos) {
    throw NoHostName(name, "several hosts are written node[1-3]");
  }
  if (!std::all_of(name.begin(), name.end(), is_allowed)) {
    throw NoHostName(name, "only ASCII letters, digits, '-', '_' and '.' are allowed");
  }
  std::string_view rest = name;
  if (rest.ends_with('.')) rest.remove_suffix(1);
  if (rest.size() > kMaxNameLength) throw NoHostName(name, "it is too long");
  for (;;) {
    const std::size_t dot = rest.find('.');
    const std::string_view label = rest.substr(0, dot);
    if (label.empty()) throw NoHostName(name, "there is nothing between two dots");
    if (label.size() > kMaxLabelLength) throw NoHostName(name, "a part of it is too long");
    if (label.front() == '-' || label.back() == '-') {
      throw NoHostName(name, "a part of it begins or ends with '-'");
    }
    if (dot == std::string_view::npos) {
      if (IsNumber(label) && !IsAddressOf(AF_INET, name))
        throw NoHostName(name, "it is not an IPv4 address either");
      return;
    }
    rest.remove_prefix(dot + 1);
  }
}

/// Splits a word at the commas outside brackets.
std::vector<std::string_view> SplitAtCommas(std::string_view word) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  bool in_brackets = false;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (word[i] == '[') in_brackets = true;
    if (word[i] == ']') in_brackets = false;
    if (word[i] != ',' || in_brackets) continue;
    parts.push_back(word.substr(begin, i - begin));
    begin = i + 1;
  }
  parts.push_back(word.substr(begin));
  return parts;
}

/// Appends a name for each number in a range such as "1-3" or "7". A name consists of `before`, the number,
/// with leading zeros as in the range, and `after`. Throws std::runtime_error if the range is malformed or
/// there would be more than kMaxHosts names.
void AppendRange(const std::string& before, std::string_view range, std::string_view after,
                 std::vector<std::string>& names) {
  constexpr std::size_t kMaxDigits = 9;
  const std::size_t dash = range.find('-');
  const std::string_view first = range.substr(0, dash);
  const std::string_view last = dash == std::string_view::npos ? first : range.substr(dash + 1);
  const auto value = [](std::string_view digits) {
    std::size_t number = 0;
    for (const char digit : digits) number = number * 10 + static_cast<std::size_t>(digit - '0');
    return number;
  };
  if (!IsNumber(first) || !IsNumber(last) || std::max(first.size(), last.size()) > kMaxDigits ||
      first.size() > last.size() || value(first) > value(last) ||
      (last.size() > first.size() && (first[0] == '0' || last[0] == '0') && first != "0")) {
    throw std::runtime_error(
        fmt::format("{} is not a range of hosts; write it as in node[1-3,7] or node[08-11]", Quoted(range)));
  }
  for (std::size_t number = value(first); number <= value(last); ++number) {
    names.push_back(fmt::format("{}{:0{}}{}", before, number, first.size(), after));
    if (names.size() > kMaxHosts) {
      throw std::runtime_error(fmt::format("[{}] names more than {} hosts", range, kMaxHosts));
    }
  }
}

/// Expands the ranges of a name such as "rack[1-2]node[08-11]". The number in the first brackets varies
/// fastest. A name without brackets is returned unchanged. Throws std::runtime_error if the name is
/// malformed or stands for more than kMaxHosts hosts.
std::vector<std::string> ExpandRanges(const std::string& word) {
  const std::size_t open = word.find('[');
  if (open == std::string::npos) {
    if (word.find(']') != std::string::npos) throw std::runtime_error("there is a ']' without a '['");
    return {word};
  }
  const std::size_t close = word.find(']', open);
  if (close == std::string::npos) throw std::runtime_error("the ']' is missing");
  std::vector<std::string> expanded;
  std::string_view ranges = std::string_view(word).substr(open + 1, close - open - 1);
  for (const std::string& rest : ExpandRanges(word.substr(close + 1))) {
    for (std::string_view left = ranges;;) {
      const std::size_t comma = left.find(',');
      AppendRange(word.substr(0, open), left.substr(0, comma), rest, expanded);
      if (comma == std::string_view::npos) break;
      left.remove_prefix(comma + 1);
    }
  }
  return expanded;
}

/// Stores the port of "host:text" in `options.port`. Throws std::runtime_error if the text is not a port, if
/// it contradicts a port already stored, or if it may be a number of slots. `is_plainly_port`: it cannot be a
/// number of slots.
void TakePort(std::string_view host, std::string_view text, bool is_plainly_port, LineOptions& options) {
  const std::uint16_t port = ParsePort(text);
  if (!is_plainly_port && port < kFirstPlainPort) {
    throw std::runtime_error(fmt::format(
        "'{0}:{1}' may mean {1} slots or port {1}; write '{0} slots={1}' or '{0} port={1}'", host, port));
  }
  if (options.port != 0 && options.port != port) {
    throw std::runtime_error(fmt::format("it has two ports, {} and {}", port, options.port));
  }
  options.port = port;
}

/// Parses a word such as "alice@node[1-3]:2222", "[fe80::1]:2222" or "node1*2". Throws std::runtime_error if
/// it is invalid.
std::vector<Host> ParseHostWord(std::string_view word, LineOptions options) {
  Host host;
  if (const std::size_t scheme = word.find("://"); scheme != std::string_view::npos) {
    throw NoHostName(word, fmt::format("leave out {}", Quoted(word.substr(0, scheme + 3))));
  }
  if (const std::size_t at = word.rfind('@'); at != std::string_view::npos) {
    host.user = word.substr(0, at);
    word.remove_prefix(at + 1);
    if (host.user.empty()) throw std::runtime_error("there is no user before the '@'");
    if (host.user[0] == '-') {
      throw std::runtime_error(fmt::format("the user {} would be read as an option", Quoted(host.user)));
    }
    if (Quoted(host.user).size() != host.user.size() + 2 ||
        host.user.find_first_of(",[]*") != std::string::npos ||
        host.user.find(kByteOrderMark) != std::string::npos) {  // from concatenated files
      throw std::runtime_error(fmt::format("{} is not a user name", Quoted(host.user)));
    }
  }
  if (const std::size_t star = word.rfind('*'); star != std::string_view::npos) {
    const int slots = ParseNumber(word.substr(star + 1), kMaxSlots, "number of slots");
    if (options.slots)
      throw std::runtime_error("it gives the number of slots twice, after '*' and in slots=");
    options.slots = slots;
    word = word.substr(0, star);
  }
  if (options.max_slots != 0 && options.max_slots < options.slots.value_or(1)) {
    throw std::runtime_error(
        fmt::format("max_slots={} is below slots={}", options.max_slots, options.slots.value_or(1)));
  }
  if (std::count(word.begin(), word.end(), '[') > kMaxRanges) {
    throw std::runtime_error(fmt::format("{} has more than {} ranges in brackets", Quoted(word), kMaxRanges));
  }
  const bool is_plainly_port = !host.user.empty() || options.slots.has_value();
  const std::size_t bracket = word.find(']');
  std::vector<std::string> names;
  if (word.starts_with('[') && word.substr(0, bracket).find(':') != std::string_view::npos) {
    if (bracket == std::string_view::npos) throw std::runtime_error("the ']' is missing");
    const std::string_view rest = word.substr(bracket + 1);
    if (!rest.empty() && rest.front() != ':') {
      throw std::runtime_error(fmt::format("only :PORT may follow ']', not {}", Quoted(rest)));
    }
    if (!rest.empty()) TakePort(word.substr(0, bracket + 1), rest.substr(1), true, options);
    names.emplace_back(word.substr(1, bracket - 1));
  } else if (std::count(word.begin(), word.end(), ':') == 1) {
    const std::size_t colon = word.find(':');
    TakePort(word.substr(0, colon), word.substr(colon + 1), is_plainly_port, options);
    names = ExpandRanges(std::string(word.substr(0, colon)));
  } else {
    names = ExpandRanges(std::string(word));  // without a port; several colons mean an IPv6 address
  }
  host.port = options.port;
  host.slots = options.slots.value_or(1);
  host.max_slots = options.max_slots;
  std::vector<Host> hosts;
  for (std::string& name : names) {
    CheckName(name);
    host.name = std::move(name);
    hosts.push_back(host);
  }
  return hosts;
}

/// The hosts in the order in which they are first named, without duplicates.
class HostList {
 public:
  void Add(Host host) {
    const auto [place, is_new] = places_.try_emplace({host.name, host.user, host.port}, hosts_.size());
    if (is_new) {
      if (hosts_.size() == kMaxHosts) {
        throw std::runtime_error(fmt::format("there are more than {} hosts", kMaxHosts));
      }
      hosts_.push_back(std::move(host));
      return;
    }
    Host& same = hosts_[place->second];
    const auto limit = [](const Host& one) { return one.max_slots != 0 ? one.max_slots : one.slots; };
    if (same.max_slots != 0 || host.max_slots != 0) {
      same.max_slots = std::min(limit(same) + limit(host), kMaxSlots);
    }
    same.slots = std::min(same.slots + host.slots, kMaxSlots);
  }

  std::vector<Host> Take() { return std::move(hosts_); }

 private:
  std::vector<Host> hosts_;
  std::map<std::tuple<std::string, std::string, std::uint16_t>, std::size_t> places_;
};

}  // namespace

std::string Host::Login() const {
  return user.empty() ? name : fmt::format("{}@{}", user, name);
}

std::string Host::Id() const {
  return port == 0 ? Login() : fmt::format("{}:{}", Login(), port);
}

std::string Host::Line() const {
  std::string line = fmt::format("{} slots={}", Login(), slots);
  if (max_slots != 0) line += fmt::format(" max_slots={}", max_slots);
  if (port != 0) line += fmt::format(" port={}", port);
  return line;
}

std::vector<Host> ParseHosts(std::string_view text, const std::string& source) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  HostList list;
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line.substr(0, line.find('#')));
    std::string first;
    if (!(words >> first)) continue;
    try {
      if (line.size() > kMostLineBytes) throw std::runtime_error("the line is too long");
      const LineOptions options = ParseLineOptions(words, first);
      for (const std::string_view word : SplitAtCommas(first)) {
        for (Host& host : ParseHostWord(word, options)) list.Add(std::move(host));
      }
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(fmt::format("{}:{}: {}", source, number, error.what()));
    }
  }
  std::vector<Host> hosts = list.Take();
  if (hosts.empty()) throw std::runtime_error(fmt::format("{}: it contains no hosts", source));
  return hosts;
}

std::string HostFilePath(const std::string& file) {
  if (!file.empty()) return file;
  const char* named = std::getenv("HOSTFILE");
  return named == nullptr ? "" : named;
}

std::vector<Host> ReadHosts(const std::string& file) {
  const std::string path = HostFilePath(file);
  if (path.empty()) {
    throw std::runtime_error(
        "no hosts are given: use --host-file FILE (one host per line), or set $HOSTFILE");
  }
  std::string text;
  try {
    text = ReadWholeFile(path);
  } catch (const std::runtime_error& error) {
    const bool names_hosts =
        path.find('/') == std::string::npos && path.find_first_of(",:") != std::string::npos;
    throw std::runtime_error(
        fmt::format("the host file: {}{}", error.what(),
                    names_hosts ? "; --host-file (-H) takes a file with one host per line" : ""));
  }
  return ParseHosts(text, path);
}

std::vector<std::size_t> PlacesOn(const std::vector<Host>& hosts, std::size_t count) {
  std::vector<std::size_t> places;
  std::vector<std::size_t> used(hosts.size());
  while (places.size() < count) {
    const std::size_t before = places.size();
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      std::size_t taken = std::min(count - places.size(), static_cast<std::size_t>(hosts[i].slots));
      if (hosts[i].max_slots != 0) {
        taken = std::min(taken, static_cast<std::size_t>(hosts[i].max_slots) - used[i]);
      }
      places.insert(places.end(), taken, i);
      used[i] += taken;
    }
    if (places.size() == before) {
      throw std::runtime_error(fmt::format(
          "the hosts have room for {} processes (max_slots), but {} are to be started", before, count));
    }
  }
  return places;
}

}  // namespace warren::submit
