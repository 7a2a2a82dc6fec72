// Which hosts a job may use: a file with one host a line.
//
//   node1                    a name or address, or a name of ~/.ssh/config
//   node2 slots=4            place for four processes
//   alice@node3:2222         another user, another port
//   [fe80::1]:2222           an IPv6 address with a port; without one the brackets may be left out
//   # a comment              also behind a host
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace warren::submit {

struct Host {
  std::string name;        ///< without brackets
  std::string user;        ///< empty: not given
  std::uint16_t port = 0;  ///< 0: not given
  int slots = 1;

  bool operator==(const Host&) const = default;
  /// "alice@node3": what ssh takes.
  std::string Login() const;
};

/// The hosts in the order of the text; one that is named again gets the slots of both lines. `source` names
/// the text in errors. Throws std::runtime_error that says which line is wrong, and how it could be right.
std::vector<Host> ParseHosts(std::string_view text, const std::string& source);

/// The hosts in a file. `file` empty: in that which $HOSTFILE names. Throws std::runtime_error, also when
/// there is none.
std::vector<Host> ReadHosts(const std::string& file);

/// For each of `count` processes the index of its host: each host's slots in turn, and from the first again
/// when there are more processes than slots.
std::vector<std::size_t> PlacesOn(const std::vector<Host>& hosts, std::size_t count);

}  // namespace warren::submit
