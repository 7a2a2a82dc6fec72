#include "submit/cluster/host_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

#include "submit/process/whole_file.h"

namespace warren::submit {
namespace {

constexpr int kMaxSlots = 100'000;

int ParseNumber(std::string_view text, int most, std::string_view what) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 1 || value > most) {
    throw std::runtime_error(fmt::format("'{}' is no {}: a number from 1 to {}", text, what, most));
  }
  return value;
}

void SetPort(Host& host, std::string_view text) {
  host.port = static_cast<std::uint16_t>(ParseNumber(text, 65535, "port"));
}

/// "user@host:port" and its parts.
Host ParseAddress(std::string_view word) {
  Host host;
  if (const std::size_t at = word.rfind('@'); at != std::string_view::npos) {
    host.user = word.substr(0, at);
    word.remove_prefix(at + 1);
    if (host.user.empty()) throw std::runtime_error("there is no user in front of the '@'");
  }
  if (word.starts_with('[')) {
    const std::size_t bracket = word.find(']');
    if (bracket == std::string_view::npos) throw std::runtime_error("the ']' is missing");
    host.name = word.substr(1, bracket - 1);
    word.remove_prefix(bracket + 1);
    if (!word.empty() && word.front() != ':') {
      throw std::runtime_error(fmt::format("after ']' comes :PORT or nothing, not '{}'", word));
    }
    if (!word.empty()) SetPort(host, word.substr(1));
  } else if (std::count(word.begin(), word.end(), ':') == 1) {
    const std::size_t colon = word.find(':');
    host.name = word.substr(0, colon);
    SetPort(host, word.substr(colon + 1));
  } else {
    host.name = word;  // with several colons it is an IPv6 address
  }
  if (host.name.empty()) throw std::runtime_error("there is no host name");
  if (host.name.starts_with('-')) {
    throw std::runtime_error(fmt::format("'{}' would be taken for an option", host.name));
  }
  return host;
}

Host ParseLine(std::istringstream& words, const std::string& first) {
  Host host = ParseAddress(first);
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    if (equals == std::string::npos || (key != "slots" && key != "max_slots" && key != "max-slots")) {
      throw std::runtime_error(fmt::format("'{}' is not understood; a line is a host and slots=N", word));
    }
    const int count = ParseNumber(word.substr(equals + 1), kMaxSlots, "number of slots");
    if (key == "slots") host.slots = count;
  }
  return host;
}

}  // namespace

std::string Host::Login() const {
  return user.empty() ? name : fmt::format("{}@{}", user, name);
}

std::vector<Host> ParseHosts(std::string_view text, const std::string& source) {
  std::vector<Host> hosts;
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line.substr(0, line.find('#')));
    std::string first;
    if (!(words >> first)) continue;
    try {
      Host host = ParseLine(words, first);
      const auto same = std::find_if(hosts.begin(), hosts.end(), [&](const Host& other) {
        return other.name == host.name && other.user == host.user && other.port == host.port;
      });
      if (same == hosts.end()) {
        hosts.push_back(std::move(host));
      } else {
        same->slots = std::min(same->slots + host.slots, kMaxSlots);
      }
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(fmt::format("{}:{}: {}", source, number, error.what()));
    }
  }
  if (hosts.empty()) throw std::runtime_error(fmt::format("{}: there is no host in it", source));
  return hosts;
}

std::vector<Host> ReadHosts(const std::string& file) {
  std::string path = file;
  if (path.empty()) {
    const char* named = std::getenv("HOSTFILE");
    if (named == nullptr || *named == '\0') {
      throw std::runtime_error(
          "there is no list of hosts: give --host-file FILE (one host a line), or name it in $HOSTFILE");
    }
    path = named;
  }
  std::string text;
  try {
    text = ReadWholeFile(path);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("the host file: {}", error.what()));
  }
  return ParseHosts(text, path);
}

std::vector<std::size_t> PlacesOn(const std::vector<Host>& hosts, std::size_t count) {
  std::vector<std::size_t> places;
  while (places.size() < count) {
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      const std::size_t left = count - places.size();
      places.insert(places.end(), std::min(left, static_cast<std::size_t>(hosts[i].slots)), i);
    }
  }
  return places;
}

}  // namespace warren::submit
